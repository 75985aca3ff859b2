package admin

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer refuses users other than the owner of this process and root.
func checkPeer(c net.Conn) error {
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("cannot tell the user of a %T", c)
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var failure error
	err = raw.Control(func(fd uintptr) {
		cred, failure = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil {
		return err
	}
	if failure != nil {
		return fmt.Errorf("cannot tell the user of a connection: %w", failure)
	}
	return admit(int(cred.Uid), os.Geteuid())
}

// admit says whether a user may steer the bridge of owner.
func admit(user, owner int) error {
	if user == owner || user == 0 {
		return nil
	}
	return fmt.Errorf("user %d may not steer the bridge of user %d", user, owner)
}
