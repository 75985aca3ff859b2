package back_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
)

// secureRig is a modern server over TLS, with HTTP/2 if both ends want it, whose certificate nobody knows.
func secureRig(t *testing.T, protocol *atomic.Value, change func(*httptest.Server, *back.RemoteConfig)) *remoteRig {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the client refuses it
	cfgOf := func(c *back.RemoteConfig) {
		change(srv, c)
		srv.StartTLS()
		c.URL = srv.URL + "/mcp"
	}
	r := newRemoteRig(t, modernServer(answers{mcp.PromptsGet: echoes}), configured(cfgOf))
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		protocol.Store(req.Proto)
		r.serve(w, req)
	})
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	t.Cleanup(func() { _ = r.link.Close(context.Background()); r.remote.Close() }) // before its server
	return r
}

// writeCA writes the server's certificate as a PEM file.
func writeCA(t *testing.T, srv *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	raw := srv.TLS.Certificates[0].Certificate[0]
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A certificate that is not trusted is an error that names the issuer and the setting; caFile and insecure help, and HTTP/2 is used where the
// server has it (case 93).
func TestCertificates(t *testing.T) {
	var protocol atomic.Value
	r := secureRig(t, &protocol, func(*httptest.Server, *back.RemoteConfig) {})
	_, failed := r.link.Conn(t.Context())
	if failed == nil || !strings.Contains(failed.Message, "caFile") || !strings.Contains(failed.Message, "issued by") {
		t.Errorf("%v", failed)
	}
	for name, change := range map[string]func(*httptest.Server, *back.RemoteConfig){
		"caFile": func(srv *httptest.Server, c *back.RemoteConfig) {
			other := httptest.NewTLSServer(nil) // of the same certificate
			defer other.Close()
			c.CAFile = writeCA(t, other)
		},
		"insecure": func(_ *httptest.Server, c *back.RemoteConfig) { c.Insecure = true },
	} {
		t.Run(name, func(t *testing.T) {
			r := secureRig(t, &protocol, change)
			r.call(mcp.PromptsGet, `"name":"p"`).want(`"content":[]`)
			if protocol.Load() != "HTTP/2.0" {
				t.Errorf("spoken was %v", protocol.Load())
			}
		})
	}
}

// Files that cannot be used are named, and links say so instead of failing in another way.
func TestBadFiles(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk.pem")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]back.RemoteConfig{
		"setting caFile":                    {CAFile: junk + ".none"},
		"holds no certificate":              {CAFile: junk},
		"settings clientCert and clientKey": {ClientCert: junk, ClientKey: junk},
		"cannot use the url":                {URL: "nowhere"},
	} {
		if cfg.URL == "" {
			cfg.URL = "https://h.example/mcp"
		}
		r, err := back.NewRemote(cfg)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
		if _, err := r.Back().Open(context.Background(), bridge.OpenOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a link says %v, want %q in it", err, want)
		}
		r.Close()
	}
}

// A certificate of the client's own is shown to a server that asks for one.
func TestClientCertificate(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	pair := srv.TLS.Certificates[0]
	srv.Close()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var protocol atomic.Value
	r := secureRig(t, &protocol, func(srv *httptest.Server, c *back.RemoteConfig) {
		srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
		c.Insecure, c.ClientCert, c.ClientKey = true, cert, key
	})
	r.call(mcp.PromptsGet, `"name":"p"`).want(`"content":[]`)
}

// A configured proxy is asked for a tunnel to the server (case 93).
func TestProxy(t *testing.T) {
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked.Store(req.Method + " " + req.Host)
		to, err := net.Dial("tcp", req.Host)
		if err != nil {
			w.WriteHeader(502)
			return
		}
		w.WriteHeader(200)
		from, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		done := make(chan struct{})
		go func() { _, _ = io.Copy(to, buffered); _ = to.Close(); close(done) }()
		_, _ = io.Copy(from, to)
		_ = from.Close()
		<-done
	}))
	defer proxy.Close()
	var protocol atomic.Value
	var address string
	r := secureRig(t, &protocol, func(srv *httptest.Server, c *back.RemoteConfig) {
		c.Insecure, c.Proxy = true, proxy.URL
		address = srv.Listener.Addr().String()
	})
	r.call(mcp.PromptsGet, `"name":"p"`).want(`"content":[]`)
	if asked.Load() != "CONNECT "+address {
		t.Errorf("the proxy was asked %v, want CONNECT %s", asked.Load(), address)
	}
}
