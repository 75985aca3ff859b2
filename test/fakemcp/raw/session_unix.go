//go:build unix

package main

import "syscall"

// ownSession makes a child the leader of a new session and process group.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
