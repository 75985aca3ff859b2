//go:build !linux

package procman_test

var platformRoles map[string]func()
