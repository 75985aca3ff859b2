package main

import (
	"io"
	"net/http"
	"strconv"

	"mcpbridge/test/internal/jscan"
)

// serveHTTP answers POST /mcp with JSON and checks nothing: the floor of every measurement.
func serveHTTP(addr string, a *answerer) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(r)
		if err != nil {
			return
		}
		if jscan.Get(body, "id") == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		wait := make(oneReply, 1)
		a.handle(body, wait)
		m := <-wait
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(m)))
		w.Write(m)
	})
	return http.ListenAndServe(addr, mux)
}

func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 {
		return io.ReadAll(r.Body)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

// oneReply takes the one response of an HTTP exchange; notifications are dropped.
type oneReply chan []byte

func (c oneReply) reply(id, body []byte, isError, _ bool) { c <- response(id, body, isError) }
func (c oneReply) notify([]byte)                          {}
