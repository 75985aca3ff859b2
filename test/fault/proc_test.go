package fault

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// childVar marks the bridge's children, and all they start, in their environment: "PID:...", the bridge's pid first.
const childVar = "MCPBRIDGE_CHILD="

// guardName is the name of the process that watches over a bridge's children.
const guardName = "mcpbridge-guard"

// process is one process as /proc shows it. Its start tells it from a later one with the same pid.
type process struct {
	pid, ppid int
	state     string
	start     string // clock ticks after the boot
	args      string // of the command line, with spaces between; "" for a process that waits to be reaped
}

func (p process) String() string {
	return fmt.Sprintf("%d %s (%s, of %d)", p.pid, p.args, p.state, p.ppid)
}

func (p process) zombie() bool { return p.state == "Z" || p.state == "X" }

// processes lists all that run.
func processes() []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	list := make([]process, 0, len(dirs))
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if p, ok := look(pid); ok {
			list = append(list, p)
		}
	}
	return list
}

// look returns false for a process that is not there.
func look(pid int) (process, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return process{}, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the name may hold anything
	if len(fields) < 20 {
		return process{}, false
	}
	args, _ := os.ReadFile(dir + "/cmdline")
	p := process{pid: pid, state: fields[0], start: fields[19], args: string(bytes.TrimSpace(bytes.ReplaceAll(args, []byte{0}, []byte(" "))))}
	p.ppid, _ = strconv.Atoi(fields[1])
	return p, true
}

// there reports whether the process is still the one that was seen; one that waits to be reaped is.
func (p process) there() bool {
	now, ok := look(p.pid)
	return ok && now.start == p.start
}

// lives reports whether the process still runs.
func (p process) lives() bool {
	now, ok := look(p.pid)
	return ok && now.start == p.start && !now.zombie()
}

// marked reports whether the process carries the mark of a bridge.
func (p process) marked(bridge int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
	return err == nil && bytes.Contains(append([]byte{0}, env...), fmt.Appendf([]byte{0}, "%s%d:", childVar, bridge))
}

// household is all that a bridge is responsible for: its descendants, and what carries its mark wherever it hangs.
func household(bridge int) []process {
	all := processes()
	ours := map[int]bool{bridge: true}
	for more := true; more; {
		more = false
		for _, p := range all {
			if !ours[p.pid] && (ours[p.ppid] || p.marked(bridge)) {
				ours[p.pid], more = true, true
			}
		}
	}
	var list []process
	for _, p := range all {
		if ours[p.pid] && p.pid != bridge {
			list = append(list, p)
		}
	}
	return list
}

// servers are the children of a bridge that are servers. Those that wait to be reaped are left out, and those that are
// still the bridge's image because they have been forked a moment ago.
func servers(bridge int) []process {
	self, _ := look(bridge)
	var list []process
	for _, p := range processes() {
		if p.ppid == bridge && !p.zombie() && p.args != guardName && p.args != self.args {
			list = append(list, p)
		}
	}
	return list
}

// descriptors counts the open files of a process.
func descriptors(t testing.TB, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// resident is the memory of a process in bytes.
func resident(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// usage looks at a process for a while and returns the fewest descriptors and the most memory it saw.
func usage(t testing.TB, pid int) (files, memory int) {
	t.Helper()
	const looks = 20
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	files = descriptors(t, pid)
	for range looks {
		files, memory = min(files, descriptors(t, pid)), max(memory, resident(t, pid))
		<-tick.C
	}
	return files, memory
}

// pids reads what the fixture server has noted in its pid file.
func pids(t testing.TB, file string) []int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var list []int
	for line := range strings.Lines(string(text)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	return list
}

// kill ends a process as kill -9 does.
func kill(t testing.TB, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}
