package front

import (
	"net/http"
	"testing"
)

func TestParseAccept(t *testing.T) { // HTTP-M-04, case 31
	both, json, sse, none := Accept{true, true}, Accept{JSON: true}, Accept{SSE: true}, Accept{}
	tests := []struct {
		values []string
		want   Accept
	}{
		{nil, both},
		{[]string{""}, both},
		{[]string{" , "}, both},
		{[]string{"*/*"}, both},
		{[]string{"*"}, both},
		{[]string{"application/json, text/event-stream"}, both},
		{[]string{"text/event-stream;q=0.9,application/json;charset=utf-8"}, both},
		{[]string{"application/json", "text/event-stream"}, both},
		{[]string{"APPLICATION/JSON,Text/Event-Stream"}, both},
		{[]string{"application/json"}, json},
		{[]string{"application/*"}, json},
		{[]string{"text/event-stream"}, sse},
		{[]string{"text/*"}, sse},
		{[]string{"text/*;q=0.5, application/json"}, both},
		{[]string{"text/html"}, none},
		{[]string{"application/json-rpc, text/event-streams"}, none},
		{[]string{"*/*;q=0"}, none},
		{[]string{"*/*;q=0.000"}, none},
		{[]string{"*/*;q=0.001"}, both},
		{[]string{"*/*;q=00"}, none},
		{[]string{"*/*;q=x"}, both},
		{[]string{"*/*, text/event-stream;q=0"}, json},
		{[]string{"text/event-stream;q=0, */*"}, json},
		{[]string{"application/*;q=0, application/json"}, json},
		{[]string{"application/json;q=0, application/json"}, json},
		{[]string{"application/json; Q = 0 ;x=y, text/event-stream"}, sse},
		{[]string{"text/html, */*;q=0.1"}, both},
	}
	for _, tt := range tests {
		h := http.Header{}
		if tt.values != nil {
			h["Accept"] = tt.values
		}
		if got := ParseAccept(h); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.values, got, tt.want)
		}
		got, err := CheckAccept(h)
		if got != tt.want || (err != nil) != (tt.want == none) || err != nil && (err.Status != 406 || err.Code != -32600) {
			t.Errorf("CheckAccept %q: %+v, %v", tt.values, got, err)
		}
	}
}

func TestParseAcceptAllocatesNothing(t *testing.T) {
	h := http.Header{"Accept": {"text/html;q=0.5, application/json;charset=utf-8, text/event-stream;q=0.9"}}
	if n := testing.AllocsPerRun(100, func() { ParseAccept(h) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCheckContentType(t *testing.T) { // HTTP-M-05, case 32
	tests := []struct {
		values []string
		coding string
		ok     bool
	}{
		{[]string{"application/json"}, "", true},
		{[]string{"Application/JSON"}, "", true},
		{[]string{"application/json; charset=utf-8"}, "", true},
		{[]string{"application/json ;charset=\"x;y\"; odd"}, "", true},
		{[]string{"application/json"}, "identity", true},
		{[]string{"application/json"}, "gzip", false},
		{nil, "", false},
		{[]string{""}, "", false},
		{[]string{"text/plain"}, "", false},
		{[]string{"text/plain; application/json"}, "", false},
		{[]string{"application/json-rpc"}, "", false},
		{[]string{"application/jso"}, "", false},
		{[]string{"application/json, text/plain"}, "", false},
		{[]string{"application/json", "text/plain"}, "", false},
		{[]string{"application/x-www-form-urlencoded"}, "", false},
		{[]string{"multipart/form-data; boundary=application/json"}, "", false},
	}
	for _, tt := range tests {
		h := http.Header{}
		if tt.values != nil {
			h["Content-Type"] = tt.values
		}
		if tt.coding != "" {
			h.Set("Content-Encoding", tt.coding)
		}
		err := CheckContentType(h)
		if (err == nil) != tt.ok || err != nil && (err.Status != 415 || err.Code != -32600) {
			t.Errorf("%q %q: %v, want ok %v", tt.values, tt.coding, err, tt.ok)
		}
	}
}
