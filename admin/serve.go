package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// headTime and headBytes bound what a caller may send before it is understood (SEC-07).
	headTime  = 10 * time.Second
	headBytes = 16 << 10
	// idleTime is how long a kept-alive connection may lie still.
	idleTime = time.Minute
	// farewell is how long answers may take to reach their callers once the bridge stops.
	farewell = time.Second
)

// Serve answers on l until ctx ends: then requests under way are told so by their context, and l and all connections are
// closed. It returns when no request runs any more; nil after ctx ended.
func Serve(ctx context.Context, l net.Listener, b Backend) error {
	var open sync.RWMutex // held for reading by each request
	handler := Handler(b)
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !open.TryRLock() {
				return // the end has come
			}
			defer open.RUnlock()
			handler.ServeHTTP(w, r)
		}),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headTime,
		MaxHeaderBytes:    headBytes,
		IdleTimeout:       idleTime,
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer done()
	if srv.Shutdown(last) != nil {
		_ = srv.Close()
	}
	if err == nil {
		err = <-served
	}
	open.Lock()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("cannot answer on the control socket %s: %w", l.Addr(), err)
}
