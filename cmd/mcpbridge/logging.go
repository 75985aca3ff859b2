package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"gopkg.in/natefinch/lumberjack.v2"

	"mcpbridge/config"
)

// newLogger returns the bridge's own log: lines for people on a terminal, JSON else, into a file if one is named.
func newLogger(g *globals, c config.Log, stderr io.Writer) (log zerolog.Logger, done func()) {
	out, done := logOutput(g, c, stderr)
	level, err := zerolog.ParseLevel(pick(g.logLevel, c.Level))
	if err != nil || level == zerolog.NoLevel {
		level = zerolog.InfoLevel
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger(), done
}

// checkLevel refuses a --log-level nobody knows.
func checkLevel(name string) error {
	switch name {
	case "", "trace", "debug", "info", "warn", "error":
		return nil
	}
	return usageError(fmt.Errorf("unknown log level %q; use trace, debug, info, warn or error", name))
}

func logOutput(g *globals, c config.Log, stderr io.Writer) (out io.Writer, done func()) {
	if file := pick(g.logFile, c.File); file != "" {
		f := &lumberjack.Logger{Filename: file, MaxSize: pick(g.logMaxMB, c.MaxMB), MaxBackups: pick(g.logKeep, c.Keep)}
		return f, func() { _ = f.Close() }
	}
	if g.json || !isTerminal(stderr) {
		return stderr, func() {}
	}
	return zerolog.ConsoleWriter{Out: stderr, NoColor: g.noColor || os.Getenv("NO_COLOR") != "", TimeFormat: time.TimeOnly}, func() {}
}

func pick[T comparable](given, configured T) T {
	var zero T
	if given != zero {
		return given
	}
	return configured
}

// isTerminal reports whether w is a terminal, or at least a character device.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
