/* inject.exe PID: loads the souls_speed.dll that lies beside it into a running program. Prints one line and returns 0
 * if it is loaded; else the line says why not. For Wine, where the program that controls the game is no Windows one. */
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>
#include <tlhelp32.h>

#define LIMIT_MS 10000

enum result { LOADED, USAGE, NO_PROCESS, NO_32_BIT, NO_MEMORY, NO_THREAD, TOO_LATE, NOT_LOADED };

static int ended(enum result result, const char *text)
{
    printf("%s (error %lu)\n", text, result == LOADED ? 0 : GetLastError());
    return result;
}

static int is_32_bit(HANDLE process)
{
    BOOL emulated = FALSE;
    return IsWow64Process(process, &emulated) && emulated;
}

/* Usually kernel32 lies at the same place in all programs, but nothing promises it. */
static char *base_in(DWORD pid, const wchar_t *name)
{
    MODULEENTRY32W entry = { .dwSize = sizeof entry };
    HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPMODULE, pid);
    char *base = NULL;
    if (snapshot == INVALID_HANDLE_VALUE)
        return NULL;
    for (BOOL more = Module32FirstW(snapshot, &entry); more && !base; more = Module32NextW(snapshot, &entry))
        if (!_wcsicmp(entry.szModule, name))
            base = (char *)entry.modBaseAddr;
    CloseHandle(snapshot);
    return base;
}

static LPTHREAD_START_ROUTINE loader_in(DWORD pid)
{
    HMODULE here = GetModuleHandleW(L"kernel32.dll");
    char *function = (char *)(void *)GetProcAddress(here, "LoadLibraryW");
    char *there = base_in(pid, L"kernel32.dll");
    return (LPTHREAD_START_ROUTINE)(void *)(there ? there + (function - (char *)here) : function);
}

static int is_path_of_library(wchar_t *path, DWORD size)
{
    static const wchar_t file[] = L"souls_speed.dll";
    DWORD length = GetModuleFileNameW(NULL, path, size);
    wchar_t *name = length && length < size ? wcsrchr(path, L'\\') : NULL;
    if (!name || (size_t)(name + 1 - path) + sizeof file / sizeof *file > size)
        return 0;
    wcscpy(name + 1, file);
    return GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES;
}

static int load(HANDLE process, DWORD pid, const wchar_t *path)
{
    size_t size = (wcslen(path) + 1) * sizeof *path;
    DWORD loaded = 0;
    void *there = VirtualAllocEx(process, NULL, size, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    if (!there || !WriteProcessMemory(process, there, path, size, NULL))
        return ended(NO_MEMORY, "the path of the library cannot be written into the program");
    HANDLE thread = CreateRemoteThread(process, NULL, 0, loader_in(pid), there, 0, NULL);
    if (!thread)
        return ended(NO_THREAD, "no thread can be started in the program");
    if (WaitForSingleObject(thread, LIMIT_MS) != WAIT_OBJECT_0)
        return ended(TOO_LATE, "the program did not load the library in time"); /* It may still read the path. */
    GetExitCodeThread(thread, &loaded);
    CloseHandle(thread);
    VirtualFreeEx(process, there, 0, MEM_RELEASE);
    return loaded ? ended(LOADED, "loaded") : ended(NOT_LOADED, "the program refused to load the library");
}

int main(int count, char **arguments)
{
    static wchar_t path[32768];
    DWORD pid = count == 2 ? strtoul(arguments[1], NULL, 10) : 0;
    const DWORD rights = PROCESS_CREATE_THREAD | PROCESS_QUERY_INFORMATION | PROCESS_VM_OPERATION | PROCESS_VM_WRITE
        | PROCESS_VM_READ;
    if (!pid || !is_path_of_library(path, sizeof path / sizeof *path))
        return ended(USAGE, "give the pid of a program, with souls_speed.dll beside this one");
    HANDLE process = OpenProcess(rights, FALSE, pid);
    if (!process)
        return ended(NO_PROCESS, "no program with that pid can be opened");
    int result = is_32_bit(process) ? ended(NO_32_BIT, "the program is a 32-bit one") : load(process, pid, path);
    CloseHandle(process);
    return result;
}
