package back_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/procman"
)

// Whatever a server hides behind, and whatever it ignores, nothing of it is left once its back is halted or closed, or its
// connection is (STD-01, case 18).
func TestNothingIsLeftOfAServer(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	trees := map[string][]string{
		"alone":    {exe},
		"shells":   {"/bin/sh", "-c", "/bin/sh -c " + exe + "; true"},
		"launcher": {"/bin/sh", "-c", "exec 3<&0; " + exe + " <&3 & wait; true"},
		"daemon":   {"/bin/sh", "-c", "setsid " + exe + " & cat | " + exe},
	}
	ends := map[string]func(context.Context, *back.Stdio, *bridge.Conn) error{
		"halt":       func(ctx context.Context, s *back.Stdio, _ *bridge.Conn) error { return s.Halt(ctx) },
		"close":      func(ctx context.Context, s *back.Stdio, _ *bridge.Conn) error { return s.Close(ctx) },
		"connection": func(ctx context.Context, _ *back.Stdio, c *bridge.Conn) error { return c.Close(ctx) },
	}
	for tree, argv := range trees {
		for name, end := range ends {
			t.Run(tree+"/"+name, func(t *testing.T) {
				t.Parallel()
				mark := fmt.Sprintf("back-test-%d-%d-%s", os.Getpid(), time.Now().UnixNano(), t.Name())
				s := treeBack(argv, mark)
				c, err := openReal(t, s)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(marked(t, mark)); n == 0 || tree != "alone" && n < 2 {
					t.Fatalf("%d processes: this is no tree", n)
				}
				if err := end(t.Context(), s, c); err != nil {
					t.Error(err)
				}
				if left := marked(t, mark); len(left) > 0 {
					t.Errorf("still there: %v", left)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func treeBack(argv []string, mark string) *back.Stdio {
	return back.NewStdio(back.StdioConfig{
		Spec: procman.Spec{Name: "tree", Command: argv[0], Args: argv[1:], Env: append(os.Environ(), roleVar+"=stubborn"), Mark: mark},
		Policy: procman.Policy{Grace: procman.Grace{EOF: 50 * time.Millisecond, Term: 100 * time.Millisecond,
			Kill: 10 * time.Second}},
		Spawner: procman.OS(),
	})
}

// marked lists the living processes that belong to a tree.
func marked(t *testing.T, mark string) (found []int) {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + d.Name() + "/environ")
		stat, _ := os.ReadFile("/proc/" + d.Name() + "/stat")
		_, state, _ := strings.Cut(string(stat), ") ")
		if bytes.Contains(env, []byte(":"+mark+"\x00")) && !strings.HasPrefix(state, "Z") {
			found = append(found, pid)
		}
	}
	return found
}
