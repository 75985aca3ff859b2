package procman

import (
	"bytes"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// procStat is what /proc/PID/stat says of a process. pid and start together identify it: the number alone may be used
// again.
type procStat struct {
	pid, ppid, pgid int
	start           uint64 // in clock ticks after the boot
	zombie          bool
}

// readStat returns false for a process that does not exist.
func readStat(pid int) (procStat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// The name in parentheses may itself hold parentheses and spaces.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const state, ppid, pgrp, start = 0, 1, 2, 19 // counted from the field behind the name
	if len(fields) <= start {
		return procStat{}, false
	}
	st := procStat{pid: pid, zombie: bytes.ContainsAny(fields[state], "ZX")}
	st.ppid, _ = strconv.Atoi(string(fields[ppid]))
	st.pgid, _ = strconv.Atoi(string(fields[pgrp]))
	st.start, _ = strconv.ParseUint(string(fields[start]), 10, 64)
	return st, true
}

// signal signals the process, and no other one that has got its number meanwhile.
func (p procStat) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		if p.alive() { // no pidfd before Linux 5.3
			_ = unix.Kill(p.pid, sig)
		}
		return
	}
	defer unix.Close(fd)
	if p.alive() {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

func (p procStat) alive() bool {
	now, ok := readStat(p.pid)
	return ok && !now.zombie && now.start == p.start
}

// pids lists the processes there are.
func pids() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	list := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	return list, err
}

// maxEnviron bounds what is read of a process's environment, in bytes.
const maxEnviron = 1 << 20

// markOf returns the marker in the environment of a process, "" if it has none or may not be looked at.
func markOf(pid int) string {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	defer f.Close()
	env, _ := io.ReadAll(io.LimitReader(f, maxEnviron)) // a process that ends meanwhile has no marker
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if mark, ok := bytes.CutPrefix(kv, []byte(MarkVar+"=")); ok {
			return string(mark)
		}
	}
	return ""
}
