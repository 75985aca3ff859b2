//go:build !unix

package main

import "syscall"

// ownSession has nothing to ask for: there are no sessions on this system.
func ownSession() *syscall.SysProcAttr { return nil }
