package demo

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"mcpbridge/bridge/mcp"
)

// listen is one open subscriptions/listen.
type listen struct {
	request *request
	uris    []string // resources whose updates it gets
}

// listen opens a subscription: the acknowledgment comes first, the result only at the end (SUB-01..SUB-05). Nothing but
// resource updates is declared, so other flags are left out of the acknowledgment; an empty one stays open (SUB-17).
func (s *server) listen(ctx context.Context, r *request) {
	uris, failure := filter(r)
	if failure == nil {
		failure = s.openListen(ctx, r, uris)
	}
	if failure != nil {
		s.answer(r, nil, failure)
	}
}

// filter reads what a listen asks for and keeps what can be honoured.
func filter(r *request) ([]string, *rpcError) {
	var params struct {
		Notifications jsontext.Value `json:"notifications"`
	}
	if decode(r.params, &params) != nil || params.Notifications.Kind() != '{' {
		return nil, invalidParams("notifications must be an object")
	}
	var wanted struct {
		Tools     bool     `json:"toolsListChanged"`
		Prompts   bool     `json:"promptsListChanged"`
		Resources bool     `json:"resourcesListChanged"`
		URIs      []string `json:"resourceSubscriptions"`
	}
	if err := decode(params.Notifications, &wanted); err != nil {
		return nil, invalidParams("notifications: flags are booleans, resourceSubscriptions is a list of strings")
	}
	var honoured []string
	seen := map[string]bool{}
	for _, uri := range wanted.URIs {
		if watchable(uri) && !seen[uri] {
			seen[uri] = true
			honoured = append(honoured, uri)
		}
	}
	return honoured, nil
}

func (s *server) openListen(ctx context.Context, r *request, uris []string) *rpcError {
	if s.listening() >= MaxListens {
		return errorf(mcp.CodeInternal, "too many subscriptions, the limit is %d", MaxListens)
	}
	if _, failure := s.begin(ctx, r); failure != nil {
		return failure
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listens[r.key] = &listen{request: r, uris: uris}
	honoured := object{}
	if len(uris) > 0 {
		honoured["resourceSubscriptions"] = uris
	}
	s.write(notification(mcp.Acknowledged, object{"notifications": honoured, "_meta": r.subscription()}))
	return nil
}

func (s *server) listening() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.listens)
}

// subscription is the mark on everything that belongs to a listen: its id as it was spelt (SUB-05).
func (r *request) subscription() object { return object{mcp.MetaSubscriptionID: r.id} }

// endListens closes every subscription in order: result, then the notification by which stdio servers tear one down
// (SUB-09, SUB-10). s.mu is held.
func (s *server) endListens() {
	for key, l := range s.listens {
		delete(s.listens, key)
		delete(s.open, key)
		l.request.cancel()
		result := l.request.dress(s, object{"_meta": l.request.subscription()})
		s.write(response(l.request.id, result, nil))
		s.write(notification(mcp.Cancelled, object{"requestId": l.request.id, "reason": "server is shutting down"}))
	}
}

// updated tells everyone who wants to know that a resource changed: the legacy session and each listen a copy of its own
// (SUB-02, SUB-14). s.mu is held.
func (s *server) updated(uri string) {
	if s.session != nil && s.session.isReady && s.session.subscribed[uri] {
		s.write(notification(mcp.ResourcesUpdated, object{"uri": uri}))
	}
	for _, l := range s.listens {
		for _, held := range l.uris {
			if held == uri {
				s.write(notification(mcp.ResourcesUpdated, object{"uri": uri, "_meta": l.request.subscription()}))
			}
		}
	}
}

// subscribe serves resources/subscribe.
func (s *server) subscribe(r *request) (object, *rpcError) {
	uri, failure := uriParam(r)
	if failure != nil {
		return nil, failure
	}
	if !watchable(uri) {
		return nil, resourceNotFound(r, uri)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.subscribed[uri] = true
	return object{}, nil
}

// unsubscribe serves resources/unsubscribe; not being subscribed is no error.
func (s *server) unsubscribe(r *request) (object, *rpcError) {
	uri, failure := uriParam(r)
	if failure != nil {
		return nil, failure
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.session.subscribed, uri)
	return object{}, nil
}
