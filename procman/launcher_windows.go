package procman

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// launcher needs nothing here.
type launcher struct{}

func (*launcher) acquire() {}
func (*launcher) release() {}

// start creates the child suspended, so that it is in its job before it can start anything itself, and lets it run then.
func (*launcher) start(path string, spec Spec, env []string, files []*os.File) (*handle, error) {
	job, err := newJob()
	if err != nil {
		return nil, err
	}
	attr := &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED}
	console := hasConsole()
	if !console {
		attr.CreationFlags |= windows.CREATE_NO_WINDOW
	}
	if isBatch(path) {
		if path, attr.CmdLine, err = batchLine(path, spec); err != nil {
			_ = windows.CloseHandle(job)
			return nil, err
		}
	}
	proc, err := os.StartProcess(path, spec.argv(), &os.ProcAttr{Dir: spec.Dir, Env: env, Files: files, Sys: attr})
	if err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	if err := intoJob(proc, job); err != nil {
		_ = proc.Kill()
		_, _ = proc.Wait()
		_ = windows.CloseHandle(job)
		return nil, err
	}
	return &handle{proc: proc, pid: proc.Pid, job: job, console: console}, nil
}

// newJob makes a job whose members end with the last handle to it.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, os.NewSyscallError("CreateJobObject", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, os.NewSyscallError("SetInformationJobObject", err)
	}
	return job, nil
}

// intoJob assigns the suspended process to the job and lets it run.
func intoJob(proc *os.Process, job windows.Handle) error {
	var failed error
	err := proc.WithHandle(func(h uintptr) {
		if failed = windows.AssignProcessToJobObject(job, windows.Handle(h)); failed != nil {
			failed = os.NewSyscallError("AssignProcessToJobObject", failed)
			return
		}
		// The handle of the first thread, which ResumeThread would need, is not kept by os.StartProcess.
		resume := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")
		if failed = resume.Find(); failed != nil {
			return
		}
		if status, _, _ := resume.Call(h); status != 0 {
			failed = fmt.Errorf("cannot resume the process: %w", windows.NTStatus(status))
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// hasConsole tells whether the bridge has a console that children can share without a window of their own.
func hasConsole() bool {
	cp, err := windows.GetConsoleCP()
	return err == nil && cp != 0
}
