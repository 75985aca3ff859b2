//go:build !linux

package admin

import "net"

// checkPeer leaves it to the mode of the socket.
func checkPeer(net.Conn) error { return nil }
