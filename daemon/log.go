package daemon

import (
	"log"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"mcpbridge/bridge"
	"mcpbridge/bridge/front"
	"mcpbridge/bridge/mask"
	"mcpbridge/procman"
	"mcpbridge/telemetry"
)

// noisy is how many lines a second one server may add to the log for each kind of noise.
const noisy = 50

// maxLogged is how many bytes of a line of stderr the bridge's own log shows. It is less than a piece of an overlong line, so that
// a secret of up to the same length that lies across the end of the piece does not show.
const maxLogged = procman.MaxStderrLine / 2

// serverLogger turns what happens around one server into log lines.
type serverLogger struct {
	log   zerolog.Logger
	noise zerolog.Logger
	mask  mask.Masker
}

func (d *Daemon) serverLog(name string, m mask.Masker) *serverLogger {
	l := d.log.With().Str("server", name).Logger()
	return &serverLogger{log: l, noise: l.Sample(&zerolog.BurstSampler{Burst: noisy, Period: time.Second}), mask: m}
}

// stderr takes a line a server wrote to its stderr, which is no evidence of failure (STD-07).
func (s *serverLogger) stderr(pid int, line []byte) {
	text := s.mask.Text(telemetry.Printable(string(line)))
	if len(text) > maxLogged {
		text = strings.ToValidUTF8(text[:maxLogged], "") + "..."
	}
	s.noise.Info().Int("pid", pid).Str("stderr", text).Send()
}

// process takes an event of a server's supervisor.
func (s *serverLogger) process(e procman.Event) {
	ev := s.log.Info()
	if e.Name == procman.EventClosed {
		ev = s.log.Debug()
	}
	if e.Name == procman.EventCrashed || e.Name == procman.EventStartFailed || e.Err != nil {
		ev = s.log.Warn()
	}
	if e.Pid != 0 {
		ev = ev.Int("pid", e.Pid)
	}
	if e.Exit != nil {
		ev = ev.Str("exit", s.mask.Text(e.Exit.String()))
	}
	if e.Delay > 0 {
		ev = ev.Dur("retry_in_ms", e.Delay)
	}
	ev.Err(e.Err).Msg("process " + e.Name)
}

// event takes an event of the core. What a server prints beside the protocol is shown, a few lines a second.
func (s *serverLogger) event(e bridge.Event) {
	ev := s.noise.Debug()
	switch e.Kind {
	case bridge.EventOpened, bridge.EventClosed:
		ev = s.log.Debug()
	case bridge.EventJunk, bridge.EventViolation, bridge.EventTool, bridge.EventTimeout:
		ev = s.noise.Warn()
	}
	ev.Str("kind", string(e.Kind)).Str("detail", e.Detail).Err(e.Err).Send()
}

// request writes one line for a request that was answered.
func (s *serverLogger) request(r front.Record) {
	ev := s.log.Debug()
	if r.Err != nil && r.Err.Code != 0 {
		ev = s.log.Info().Str("error", r.Err.Message).Int("code", r.Err.Code)
		if cause := r.Err.Unwrap(); cause != nil {
			ev = ev.AnErr("cause", cause)
		}
	}
	if !ev.Enabled() {
		return
	}
	ev.Str("verb", r.Verb).Str("method", r.Method).Stringer("era", r.Era).Int("status", r.Status).
		Bool("stream", r.Stream).Dur("ms", r.Took).Msg("request")
}

// serverLog takes what net/http complains about: broken clients, at debug.
func serverLog(l zerolog.Logger) *log.Logger { return log.New(debugWriter{l}, "", 0) }

type debugWriter struct{ l zerolog.Logger }

func (w debugWriter) Write(p []byte) (int, error) {
	w.l.Debug().Msg(strings.TrimSpace(string(p)))
	return len(p), nil
}
