package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Case 26: a container's client is not killed but asked, so that it has its container removed: first by the end of its
// input, and if that does not do by SIGTERM, which it relays. Here is no docker, but a program of that name.
func TestCase26ContainerClient(t *testing.T) {
	t.Parallel()
	needProc(t)
	for _, c := range []struct{ name, flag, want string }{
		{"leaves at the end of its input", "", "eof\nremoved\n"},
		{"does not", "-stubborn", "eof\nrelayed\nremoved\n"},
	} {
		for _, way := range []string{"restart", "SIGTERM"} {
			t.Run(c.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				log := filepath.Join(dir, "log")
				script := fmt.Sprintf("#!/bin/sh\nexec '%s' -container '%s' %s\n", fixture(t), log, c.flag)
				if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
				h := house(t, object{"s": object{"command": "docker", "args": []string{"run", "--rm", "image"},
					"env": object{"PATH": dir + string(os.PathListSeparator) + os.Getenv("PATH")}}}, nil)
				b := h.Start(t)
				wantResult(t, echo(t.Context(), modern{newClient(t, h.URL("s"))}, "1", "x"))
				running := servers(b.Pid)
				if way == "SIGTERM" {
					b.Stop(t)
				} else if _, errOut, code := h.Run(t, "restart", "s"); code != 0 {
					t.Fatalf("restart exits with %d: %s", code, errOut)
				}
				if got, _ := os.ReadFile(log); string(got) != c.want {
					t.Errorf("the client of the container saw %q, want %q", got, c.want)
				}
				for _, p := range running {
					if p.lives() {
						t.Errorf("%v is left", p)
					}
				}
			})
		}
	}
}

// Case 26: `docker run` without -i gives the server no input, with -t it mangles it. The check says so.
func TestCase26CheckWarns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--rm", "image"}, "-i"},
		{[]string{"run", "-i", "-t", "image"}, "-t"},
	} {
		h := house(t, object{"s": object{"command": "docker", "args": c.args}}, nil)
		if out, errOut, _ := h.Run(t, "check"); !strings.Contains(out+errOut, c.want+" ") && !strings.Contains(out+errOut, `"`+c.want+`"`) {
			t.Errorf("check of %v says nothing of %s: %s%s", c.args, c.want, out, errOut)
		}
	}
}
