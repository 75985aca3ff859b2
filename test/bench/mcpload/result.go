//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// result is what a run prints. Times are milliseconds, memory MiB, CPU seconds.
type result struct {
	Callers    int            `json:"callers,omitempty"`
	Size       int            `json:"size,omitempty"`
	Seconds    float64        `json:"seconds,omitempty"`
	OK         int            `json:"ok"`
	Wrong      int            `json:"wrong"`
	RPCErrors  int            `json:"rpc_errors"`
	HTTPErrors int            `json:"http_errors"`
	Missing    int            `json:"missing"`
	ConnErrors int            `json:"conn_errors"`
	Timeouts   int            `json:"timeouts"`
	Notified   int            `json:"notifications,omitempty"`
	Reconnects int            `json:"reconnects,omitempty"`
	PerSecond  float64        `json:"per_sec,omitempty"`
	P50        float64        `json:"p50_ms,omitempty"`
	P90        float64        `json:"p90_ms,omitempty"`
	P99        float64        `json:"p99_ms,omitempty"`
	Max        float64        `json:"max_ms,omitempty"`
	RSS        float64        `json:"rss_MiB,omitempty"`      // the root process
	TreeRSS    float64        `json:"tree_rss_MiB,omitempty"` // and its descendants
	PeakRSS    float64        `json:"peak_rss_MiB,omitempty"`
	CPU        float64        `json:"cpu_s,omitempty"` // the root process
	Startup    float64        `json:"startup_ms,omitempty"`
	Cold       float64        `json:"cold_ms,omitempty"`
	Errors     map[string]int `json:"error_samples,omitempty"`
}

// maxSamples bounds how many different error texts a result shows.
const maxSamples = 6

// tally collects the outcomes of one run; safe for concurrent use.
type tally struct {
	mu        sync.Mutex
	r         result
	latencies []int64 // nanoseconds
}

func (t *tally) verdict(v verdict, m []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch v {
	case wrong:
		t.r.Wrong++
		t.sample(fmt.Sprintf("wrong: %.120s", m))
	case rpcError:
		t.r.RPCErrors++
		t.sample(fmt.Sprintf("rpc: %.130s", m))
	}
}

func (t *tally) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var status *statusError
	var network net.Error
	switch {
	case errors.As(err, &status):
		t.r.HTTPErrors++
	case errors.Is(err, errNoResponse):
		t.r.Missing++
	case errors.As(err, &network) && network.Timeout():
		t.r.Timeouts++
	default:
		t.r.ConnErrors++
	}
	t.sample(err.Error())
}

func (t *tally) sample(text string) {
	text = text[:min(len(text), 140)]
	if t.r.Errors == nil {
		t.r.Errors = map[string]int{}
	}
	if len(t.r.Errors) < maxSamples || t.r.Errors[text] > 0 {
		t.r.Errors[text]++
	}
}

func (t *tally) add(latencies []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latencies = append(t.latencies, latencies...)
}

// finish computes the figures of a run that took d.
func (t *tally) finish(d time.Duration) *result {
	r, l := &t.r, t.latencies
	r.Seconds, r.OK = d.Seconds(), len(l)
	if len(l) == 0 {
		return r
	}
	slices.Sort(l)
	at := func(p float64) float64 { return float64(l[min(len(l)-1, int(p*float64(len(l))))]) / 1e6 }
	r.PerSecond = float64(len(l)) / r.Seconds
	r.P50, r.P90, r.P99, r.Max = at(.5), at(.9), at(.99), float64(l[len(l)-1])/1e6
	return r
}

func (r *result) setProcess(p processUse) {
	const mib = 1 << 20
	r.RSS, r.TreeRSS, r.PeakRSS = float64(p.rss)/mib, float64(p.treeRSS)/mib, float64(p.peakRSS)/mib
	r.CPU = p.cpu.Seconds()
}
