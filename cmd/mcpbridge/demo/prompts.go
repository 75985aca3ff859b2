package demo

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// names are the values completion knows for a name.
func names() []string { return []string{"Ada", "Alan", "Barbara", "Edsger", "Grace", "Leslie", "Tony"} }

func (s *server) listPrompts(r *request) (object, *rpcError) {
	if failure := onlyPage(r); failure != nil {
		return nil, failure
	}
	argument := entry(r.version, "Name", object{"name": "name", "description": "Who is greeted.", "required": true})
	return object{"prompts": []object{
		entry(r.version, "Greet", object{"name": "greet", "description": "Asks for a warm greeting.",
			"arguments": []object{argument}}),
	}}, nil
}

// getPrompt serves prompts/get. Unknown prompts and missing arguments are -32602 (FEA-03).
func (s *server) getPrompt(r *request) (object, *rpcError) {
	var params struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if decode(r.params, &params) != nil {
		return nil, invalidParams("name must be a string, arguments an object of strings")
	}
	if params.Name != "greet" {
		return nil, invalidParams("unknown prompt: %q", params.Name)
	}
	name, ok := params.Arguments["name"]
	if !ok {
		return nil, invalidParams("prompt greet needs the argument name")
	}
	message := object{"role": "user", "content": textContent("Greet " + name + " warmly, in one sentence.")}
	return object{"description": "A greeting for " + name, "messages": []object{message}}, nil
}

// complete serves completion/complete for the one argument and the one template variable there are (FEA-11).
func (s *server) complete(r *request) (object, *rpcError) {
	var params struct {
		Ref struct {
			Type string `json:"type"`
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"ref"`
		Argument struct {
			Name  string         `json:"name"`
			Value jsontext.Value `json:"value"`
		} `json:"argument"`
	}
	var typed string
	if decode(r.params, &params) != nil || params.Argument.Value.Kind() != '"' ||
		decode(params.Argument.Value, &typed) != nil {
		return nil, invalidParams("ref and argument must be objects, argument with the strings name and value")
	}
	known := params.Ref.Type == "ref/prompt" && params.Ref.Name == "greet" ||
		params.Ref.Type == "ref/resource" && params.Ref.URI == greetingURI
	if !known || params.Argument.Name != "name" {
		return nil, invalidParams("nothing to complete for this reference and argument")
	}
	values := []string{}
	for _, name := range names() {
		if strings.HasPrefix(strings.ToLower(name), strings.ToLower(typed)) {
			values = append(values, name)
		}
	}
	return object{"completion": object{"values": values, "total": len(values), "hasMore": false}}, nil
}
