package procman

import (
	"testing"
	"time"
)

func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Minute: "1m", time.Hour: "1h", 90 * time.Second: "1m30s", 30 * time.Second: "30s", 10 * time.Minute: "10m",
		time.Hour + time.Minute: "1h1m", 500 * time.Millisecond: "500ms", time.Hour + time.Second: "1h0m1s",
	} {
		if got := spell(d); got != want {
			t.Errorf("%v is spelt %q, want %q", d, got, want)
		}
	}
}
