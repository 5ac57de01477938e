/* The same library named dinput8.dll and put into the game's folder is loaded by the game itself: what it wants of
 * DirectInput is handed on to the system's dinput8.dll, which is loaded when it is first asked for something. */
#include <windows.h>

static FARPROC system_function(const char *name)
{
    static const wchar_t file[] = L"\\dinput8.dll";
    wchar_t path[MAX_PATH + sizeof file / sizeof *file];
    UINT length = GetSystemDirectoryW(path, MAX_PATH);
    if (length == 0 || length >= MAX_PATH)
        return NULL;
    for (unsigned i = 0; i < sizeof file / sizeof *file; i++)
        path[length + i] = file[i];
    HMODULE library = LoadLibraryW(path);
    return library ? GetProcAddress(library, name) : NULL;
}

HRESULT WINAPI DirectInput8Create(HINSTANCE instance, DWORD version, REFIID wanted, void **result, IUnknown *outer)
{
    HRESULT(WINAPI *function)(HINSTANCE, DWORD, REFIID, void **, IUnknown *);
    function = (void *)system_function("DirectInput8Create");
    return function ? function(instance, version, wanted, result, outer) : E_FAIL;
}

HRESULT WINAPI DllGetClassObject(REFCLSID class, REFIID wanted, void **result)
{
    HRESULT(WINAPI *function)(REFCLSID, REFIID, void **) = (void *)system_function("DllGetClassObject");
    return function ? function(class, wanted, result) : CLASS_E_CLASSNOTAVAILABLE;
}

HRESULT WINAPI DllCanUnloadNow(void)
{
    return S_FALSE; /* The hooks stay. */
}

HRESULT WINAPI DllRegisterServer(void)
{
    HRESULT(WINAPI *function)(void) = (void *)system_function("DllRegisterServer");
    return function ? function() : E_FAIL;
}

HRESULT WINAPI DllUnregisterServer(void)
{
    HRESULT(WINAPI *function)(void) = (void *)system_function("DllUnregisterServer");
    return function ? function() : E_FAIL;
}

void *WINAPI GetdfDIJoystick(void)
{
    void *(WINAPI *function)(void) = (void *)system_function("GetdfDIJoystick");
    return function ? function() : NULL;
}
