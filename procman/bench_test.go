//go:build unix

package procman_test

import (
	"testing"

	"mcpbridge/procman"
)

// BenchmarkSpawn is the time until the bridge can write to a child, the guard's start included for each.
func BenchmarkSpawn(b *testing.B) {
	spec := roleSpec("exit3", "bench")
	for b.Loop() {
		p, err := procman.OS().Spawn(spec)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = p.Signal(procman.Kill)
		<-p.Done()
		b.StartTimer()
	}
}

// BenchmarkTryWrite is what a message costs on its way into the pipe.
func BenchmarkTryWrite(b *testing.B) {
	p, err := procman.OS().Spawn(roleSpec("discard", "bench"))
	if err != nil {
		b.Fatal(err)
	}
	in := p.Stdin().(interface{ TryWrite([]byte) (int, error) })
	msg := make([]byte, 100)
	for b.Loop() {
		if _, err := in.TryWrite(msg); err != nil {
			b.Fatal(err)
		}
	}
	_ = p.Signal(procman.Kill)
	<-p.Done()
}
