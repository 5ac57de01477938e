/* Functions of ntdll that go straight to the kernel; nobody hooks them here, and they need no lock of the process. */
#ifndef SOULS_NATIVE_H
#define SOULS_NATIVE_H

#include <windows.h>

#ifndef NT_SUCCESS
#define NT_SUCCESS(status) ((LONG)(status) >= 0)
#endif

#define STATUS_APC 0x000000C0l

LONG NTAPI NtClose(HANDLE handle);
LONG NTAPI NtDelayExecution(BOOLEAN alertable, const LARGE_INTEGER *interval);
LONG NTAPI NtGetContextThread(HANDLE thread, CONTEXT *context);
LONG NTAPI NtGetNextThread(HANDLE process, HANDLE last, ACCESS_MASK access, ULONG attributes, ULONG flags, HANDLE *next);
LONG NTAPI NtQueryPerformanceCounter(LARGE_INTEGER *counter, LARGE_INTEGER *frequency);
LONG NTAPI NtResumeThread(HANDLE thread, ULONG *count);
LONG NTAPI NtSetTimerResolution(ULONG resolution, BOOLEAN set, ULONG *current);
LONG NTAPI NtSuspendThread(HANDLE thread, ULONG *count);
LONG NTAPI NtYieldExecution(void);

#endif
