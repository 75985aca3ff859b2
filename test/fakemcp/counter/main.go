// Command counter is a stdio MCP server with state of its own, for tests that must know which process served whom. It
// speaks the legacy revisions and offers everything a session can set: a log level, subscriptions, lists that change.
//
//	-log FILE      append "PID start MARK" at the start, then "PID LINE" for each line read
//	-mark TEXT     tell this text with each answer
//	-version V     negotiate this revision instead of the one asked for; @FILE reads it from a file at each initialize
//
// Tools: next {} counts, from 1 in each process; about {} tells what the process was started with; sleep {ms} answers
// later; announce {method, params} sends a notification, then answers; crash {} exits 3. All answers but the last are
// an object {pid, mark, n, args} in structuredContent.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	s := &server{out: os.Stdout}
	logFile := flag.String("log", "", "append what happens to this file")
	flag.StringVar(&s.mark, "mark", "", "text told with each answer")
	flag.StringVar(&s.version, "version", "", "revision to negotiate, or @FILE")
	flag.Parse()
	s.args = flag.Args()
	if err := s.run(*logFile); err != nil {
		fmt.Fprintln(os.Stderr, "counter:", err)
		os.Exit(1)
	}
}

func (s *server) run(logFile string) error {
	s.log = io.Discard
	if logFile != "" {
		f, err := os.OpenFile(logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		s.log = f
	}
	s.note([]byte("start " + s.mark))
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			s.note(line[:len(line)-1])
			s.handle(line)
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot read input: %w", err)
		}
	}
}
