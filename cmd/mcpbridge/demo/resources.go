package demo

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mcpbridge/bridge/mcp"
)

const (
	clockURI       = "demo://clock"
	readmeURI      = "demo://readme"
	greetingPrefix = "demo://greeting/"
	greetingURI    = greetingPrefix + "{name}"
)

const readme = `This server shows what a bridge has to carry: tools with and without progress, questions to the user,
log messages, resources that change, prompts and completion. It keeps nothing and reaches nothing.`

// watchable reports whether updates of the resource can be subscribed to.
func watchable(uri string) bool { return uri == clockURI || uri == readmeURI }

// entry describes something listed, with the title only where the revision has it.
func entry(v mcp.Version, title string, members object) object {
	if titles(v) {
		members["title"] = title
	}
	return members
}

func (s *server) listResources(r *request) (object, *rpcError) {
	if failure := onlyPage(r); failure != nil {
		return nil, failure
	}
	return object{"resources": []object{
		entry(r.version, "Clock", object{"uri": clockURI, "name": "clock", "mimeType": "text/plain",
			"description": "Counts the calls of the tool touch."}),
		entry(r.version, "Read me", object{"uri": readmeURI, "name": "readme", "mimeType": "text/plain",
			"description": "What this server is for."}),
	}}, nil
}

func (s *server) listTemplates(r *request) (object, *rpcError) {
	if failure := onlyPage(r); failure != nil {
		return nil, failure
	}
	return object{"resourceTemplates": []object{
		entry(r.version, "Greeting", object{"uriTemplate": greetingURI, "name": "greeting", "mimeType": "text/plain",
			"description": "A greeting for a name."}),
	}}, nil
}

func (s *server) readResource(r *request) (object, *rpcError) {
	uri, failure := uriParam(r)
	if failure != nil {
		return nil, failure
	}
	text, ok := s.resourceText(uri)
	if !ok {
		return nil, resourceNotFound(r, uri)
	}
	r.fresh = uri == clockURI
	return object{"contents": []object{{"uri": uri, "mimeType": "text/plain", "text": text}}}, nil
}

func (s *server) resourceText(uri string) (string, bool) {
	switch uri {
	case clockURI:
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Sprintf("ticks: %d", s.ticks), true
	case readmeURI:
		return readme, true
	}
	rest, ok := strings.CutPrefix(uri, greetingPrefix)
	name, err := url.PathUnescape(rest)
	if !ok || err != nil || name == "" || strings.Contains(rest, "/") {
		return "", false
	}
	return greeting(name), true
}

func greeting(name string) string { return "Hello, " + name + "!" }

func uriParam(r *request) (string, *rpcError) {
	var params struct {
		URI jsontext.Value `json:"uri"`
	}
	var uri string
	if decode(r.params, &params) != nil || params.URI.Kind() != '"' || decode(params.URI, &uri) != nil {
		return "", invalidParams("uri must be a string")
	}
	return uri, nil
}

// resourceNotFound has a code of its own in the legacy era only (FEA-01).
func resourceNotFound(r *request, uri string) *rpcError {
	code := mcp.CodeResourceNotFound
	if r.modern() {
		code = mcp.CodeInvalidParams
	}
	failure := errorf(code, "resource not found: %s", uri)
	failure.Data = object{"uri": uri}
	return failure
}

// onlyPage refuses cursors: every list fits one page, so none was ever given out (FEA-03, FEA-06).
func onlyPage(r *request) *rpcError {
	var params struct {
		Cursor jsontext.Value `json:"cursor"`
	}
	if decode(r.params, &params) != nil || params.Cursor != nil && params.Cursor.Kind() != 'n' {
		return invalidParams("unknown cursor")
	}
	return nil
}
