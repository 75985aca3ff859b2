package procman_test

import (
	"runtime"
	"slices"
	"testing"

	"mcpbridge/procman"
)

// Case 83: the documented set and nothing else.
func TestBaseEnv(t *testing.T) {
	got := procman.BaseEnv([]string{
		"PATH=/bin", "HOME=/h", "LANG=C", "LC_ALL=C", "LC_TIME=C", "TMPDIR=/t", "TMP=/t", "TEMP=/t", "USER=u", "LOGNAME=u",
		"SHELL=/bin/sh", "TERM=dumb", "TZ=UTC", "XDG_RUNTIME_DIR=/run", "FOO=1", "MCPBRIDGE_TOKEN=x", "MCPBRIDGE_CHILD=y",
		"PATHOLOGY=1", "AWS_SECRET=1", "LD_PRELOAD=x", "=C:=x", "broken", "XDGX=1", "EMPTY=", "HOME2=1",
	})
	want := []string{
		"PATH=/bin", "HOME=/h", "LANG=C", "LC_ALL=C", "LC_TIME=C", "TMPDIR=/t", "TMP=/t", "TEMP=/t", "USER=u", "LOGNAME=u",
		"SHELL=/bin/sh", "TERM=dumb", "TZ=UTC", "XDG_RUNTIME_DIR=/run",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestBaseEnvOfWindows(t *testing.T) {
	environ := []string{"SystemRoot=1", "windir=1", "ComSpec=1", "PathExt=1", "ProgramFiles(x86)=1", "Path=1", "OS=1"}
	want := 0
	if runtime.GOOS == "windows" {
		want = len(environ)
	}
	if got := procman.BaseEnv(append(environ, "mcpbridge_x=1")); len(got) != want {
		t.Errorf("got %q", got)
	}
}
