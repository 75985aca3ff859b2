package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// Lines of a log that are shown when the request does not say how many, and most it may ask for.
const (
	DefaultLines = 100
	MaxLines     = 10_000
)

// Codes of a [Failure].
const (
	CodeUnknownServer = "unknown_server"
	CodeConfig        = "bad_config"
	CodeBadRequest    = "bad_request"
	CodeFailed        = "failed"
)

// Failure is the body of an answer whose status is not 2xx.
type Failure struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Handler serves the control API:
//
//	GET  /v1/status                                  Status
//	POST /v1/servers/{name}/restart                  204
//	POST /v1/reload                                  Reloaded
//	POST /v1/drain                                   204, once nothing is open any more
//	GET  /v1/servers/{name}/logs?lines=N&follow=1    text, one line a log line
//
// Names are percent-encoded. Bodies of requests are not read. An error is a [Failure] with 400, 404, 422 or 500. Who may call is the
// listener's business, see [Listen].
func Handler(b Backend) http.Handler {
	a := api{b}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", a.status)
	mux.HandleFunc("POST /v1/servers/{name}/restart", a.restart)
	mux.HandleFunc("POST /v1/reload", a.reload)
	mux.HandleFunc("POST /v1/drain", a.drain)
	mux.HandleFunc("GET /v1/servers/{name}/logs", a.logs)
	return mux
}

type api struct{ backend Backend }

func (a api) status(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, a.backend.Status().filled())
}

func (a api) restart(w http.ResponseWriter, r *http.Request) {
	if err := a.backend.Restart(r.Context(), r.PathValue("name")); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a api) reload(w http.ResponseWriter, r *http.Request) {
	done, err := a.backend.Reload(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, done.filled())
}

func (a api) drain(w http.ResponseWriter, r *http.Request) {
	if err := a.backend.Drain(r.Context()); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a api) logs(w http.ResponseWriter, r *http.Request) {
	lines, follow, err := logQuery(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, CodeBadRequest, err.Error())
		return
	}
	source, err := a.backend.Logs(r.PathValue("name"))
	if err != nil {
		fail(w, err)
		return
	}
	out := &text{w: w, flush: follow}
	if follow {
		out.begin()
		err = source.Follow(r.Context(), lines, out)
	} else {
		err = source.Tail(lines, out)
	}
	out.end(err)
}

// logQuery reads ?lines=N&follow=1. An empty value counts as none.
func logQuery(r *http.Request) (lines int, follow bool, err error) {
	query := r.URL.Query()
	lines = DefaultLines
	if given := query.Get("lines"); given != "" {
		lines, err = strconv.Atoi(given)
		if err != nil || lines < 0 || lines > MaxLines {
			return 0, false, fmt.Errorf("cannot show %q lines: give a number from 0 to %d", given, MaxLines)
		}
	}
	if given := query.Get("follow"); given != "" {
		if follow, err = strconv.ParseBool(given); err != nil {
			return 0, false, fmt.Errorf("cannot understand follow=%q: give 1 or 0", given)
		}
	}
	return lines, follow, nil
}

func fail(w http.ResponseWriter, err error) {
	status, code := http.StatusInternalServerError, CodeFailed
	switch {
	case errors.Is(err, ErrUnknownServer):
		status, code = http.StatusNotFound, CodeUnknownServer
	case errors.Is(err, ErrConfig):
		status, code = http.StatusUnprocessableEntity, CodeConfig
	}
	refuse(w, status, code, err.Error())
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	var f Failure
	f.Error.Code, f.Error.Message = code, message
	answer(w, status, f)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the caller has left
}
