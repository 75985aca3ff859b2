//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of CPU times in /proc (USER_HZ).
const clockTick = 10 * time.Millisecond

// process is one row of /proc.
type process struct {
	pid, parent int
	started     string // with the pid it names a process for good
	rss         int64  // bytes
	cpu         time.Duration
}

func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The name in parentheses may hold anything; the fields start after the last one.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+2:]))
	if len(f) < 22 || f[0] == "Z" {
		return process{}, false
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n }
	return process{
		pid: pid, parent: int(number(1)), started: f[19],
		rss: number(21) * int64(os.Getpagesize()),
		cpu: time.Duration(number(11)+number(12)) * clockTick,
	}, true
}

// processTree returns root and all its descendants, root first.
func processTree(root int) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]process{}
	var tree []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		p, ok := readProcess(pid)
		if !ok {
			continue
		}
		if pid == root {
			tree = append(tree, p)
		}
		children[p.parent] = append(children[p.parent], p)
	}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i].pid]...)
	}
	return tree
}

// killLeft ends those of the processes that still live.
func killLeft(ps []process) {
	for _, p := range ps {
		if now, ok := readProcess(p.pid); ok && now.started == p.started {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

// processUse is what a process tree used.
type processUse struct {
	rss, peakRSS, treeRSS int64 // bytes; rss and peakRSS of the root
	cpu                   time.Duration
}

// sampler looks at a process tree five times a second.
type sampler struct {
	pid      int
	cpuStart time.Duration
	stop     chan struct{}
	done     chan struct{}
	use      processUse
}

// startSampler starts sampling; pid 0 samples nothing.
func startSampler(pid int) *sampler {
	s := &sampler{pid: pid, stop: make(chan struct{}), done: make(chan struct{})}
	if p, ok := readProcess(pid); ok {
		s.cpuStart = p.cpu
	}
	go s.run()
	return s
}

func (s *sampler) run() {
	defer close(s.done)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		s.sample()
		select {
		case <-s.stop:
			s.sample()
			return
		case <-tick.C:
		}
	}
}

func (s *sampler) sample() {
	if s.pid == 0 {
		return
	}
	var total int64
	for i, p := range processTree(s.pid) {
		total += p.rss
		if i == 0 {
			s.use.rss, s.use.cpu = p.rss, p.cpu-s.cpuStart
			s.use.peakRSS = max(s.use.peakRSS, p.rss)
		}
	}
	s.use.treeRSS = total
}

func (s *sampler) end() processUse {
	close(s.stop)
	<-s.done
	return s.use
}
