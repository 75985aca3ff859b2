package procman

import (
	"os"

	"golang.org/x/sys/unix"
)

func setPipeSize(f *os.File, size int) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) // above the limit, or the user's quota is used up: go without
	})
}
