package procman_test

import (
	"errors"
	"testing"
	"time"

	"mcpbridge/procman"
)

func TestExitString(t *testing.T) {
	tests := []struct {
		exit procman.Exit
		want string
	}{
		{procman.Exit{Code: 3, Runtime: 1234 * time.Millisecond}, "exited with status 3 after 1.2s"},
		{procman.Exit{Code: -1, Signal: "SIGSEGV", Runtime: 90*time.Second + 1}, "killed by SIGSEGV after 1m30s"},
		{procman.Exit{Runtime: 12345 * time.Microsecond}, "ended by itself with status 0 after 12ms; does it speak MCP over stdio?"},
		{procman.Exit{Requested: true}, "was stopped (status 0) after 0s"},
		{procman.Exit{Requested: true, Code: -1, Signal: "SIGKILL", Runtime: time.Second}, "was stopped with SIGKILL after 1s"},
		{procman.Exit{Code: 0xC0000005}, "exited with status 0xC0000005 after 0s"},
		{procman.Exit{Err: errors.New("lost")}, "ended in an unknown way after 0s: lost"},
	}
	for _, tt := range tests {
		if got := tt.exit.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
