package daemon

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"mcpbridge/config"
)

// A path that is not in its plain form is nobody's: no redirect, and no way around the guard (case 94).
func TestPathsAreNotCleaned(t *testing.T) {
	d, err := New(Options{Config: config.ForCommand([]string{"never-started"}), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.end()
	var h http.Handler = d
	for path, want := range map[string]int{
		"/mcp": 405, "/servers/default/mcp": 405, "/healthz": 200, // PUT is nobody's verb
		"//mcp": 404, "/x/../mcp": 404, "/mcp/": 404, "/servers//default/mcp": 404, "/servers/../mcp": 404, "/": 404,
	} {
		r := httptest.NewRequest("PUT", "http://localhost"+path, strings.NewReader("{}"))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want || w.Header().Get("Location") != "" {
			t.Errorf("%s: %d, Location %q; want %d", path, w.Code, w.Header().Get("Location"), want)
		}
	}
}
