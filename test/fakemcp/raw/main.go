// Command raw is a hand-rolled MCP server that does as little as possible for a
// message, so that it is never what a measurement measures, and that misbehaves on
// demand. It speaks the legacy revisions.
//
//	-dual            also speak 2026-07-28
//	-junk CLASSES    print junk around each tools/call reply:
//	                 text,blank,crlf,utf8,long,scalar,object,batch,split
//	-log FILE        append "pid id method [requestId=...]" for each message received
//	-pidfile FILE    append the own pid
//	-stubborn        ignore the end of stdin and SIGTERM, SIGINT, SIGHUP
//	-say TEXT        write a line to stderr first
//	-exit STATUS     exit at once
//	-wait DURATION   read nothing for so long
//	-life DURATION   exit at random with status 7, after so long on average
//	-daemon FILE     leave a stubborn process behind in a session of its own; append its pid
//	-leave FILE      only start a stubborn process, append its pid and exit
//	-container FILE  be a container's client and append what happens: "eof" at the end of stdin, "relayed" on SIGTERM
//	                 (also if stubborn), "removed" at the end, which takes 1 s after the former and 200 ms after the latter
//	-http ADDR       answer over HTTP POST instead: what HTTP costs without a bridge
//
// Tools: echo {text}, sleep {ms} (four progress steps if asked), blob {bytes}, crash, and, not listed, deaf (answers, then
// closes stdin and lives on).
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
)

func main() {
	dual := flag.Bool("dual", false, "also speak 2026-07-28")
	junk := flag.String("junk", "", "comma separated junk classes")
	logFile := flag.String("log", "", "append one line per received message to this file")
	pidFile := flag.String("pidfile", "", "append the own pid to this file")
	var m trouble
	flag.BoolVar(&m.stubborn, "stubborn", false, "ignore the end of stdin and polite signals")
	flag.StringVar(&m.say, "say", "", "write this line to stderr first")
	flag.IntVar(&m.exit, "exit", -1, "exit at once with this status")
	flag.DurationVar(&m.wait, "wait", 0, "read nothing for so long")
	flag.DurationVar(&m.life, "life", 0, "exit at random, after so long on average")
	flag.StringVar(&m.daemon, "daemon", "", "leave a stubborn process behind and append its pid to this file")
	flag.StringVar(&m.leave, "leave", "", "only start a stubborn process, append its pid to this file and exit")
	flag.StringVar(&m.container, "container", "", "be a container's client and append what happens to this file")
	httpAddr := flag.String("http", "", "serve HTTP POST at this address instead of stdio")
	flag.Parse()

	a := &answerer{dual: *dual}
	if *logFile != "" {
		a.seen = openAppend(*logFile)
	}
	if *pidFile != "" {
		fmt.Fprintln(openAppend(*pidFile), os.Getpid())
	}
	m.begin()
	if *httpAddr != "" {
		log.Fatal(serveHTTP(*httpAddr, a))
	}
	serveStdio(a, newOutput(os.Stdout, strings.Split(*junk, ",")))
	m.end(a.deaf)
}

func openAppend(name string) *os.File {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	return f
}
