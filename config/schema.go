package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Schema returns the JSON Schema (2020-12) of the file, made from the same tables that read it. It takes every file the
// reader takes, save that it asks of disabled servers, too, that their keys are of the right form. It lets keys pass
// that it does not know at the top and in an entry, because people share these files between programs; the reader finds
// misspellings among them, and it finds much else that a schema cannot.
func Schema() []byte {
	f := &file{}
	root := f.rootKeys(newConfig()).shape()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "mcpbridge configuration"
	root["description"] = "MCP servers that the bridge runs and serves over HTTP. The file may have comments and trailing commas. " +
		"Texts of places, commands, variables, URLs and headers may hold ${NAME}, ${NAME:-default}, ${env:NAME} and ${file:PATH}."
	root["$defs"] = shape{"name": nameShape(), "server": serverShape(), "servers": serversShape()}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		panic(err) // the tables hold something that is no JSON, which no input can bring about
	}
	return out.Bytes()
}

func nameShape() shape {
	return shape{
		"type": "string", "minLength": 1, "maxLength": MaxNameRunes, "pattern": namePattern, "not": shape{"enum": []string{".", ".."}},
		"description": "Name of a server, part of its URL. Names that are equal but for case are refused.",
	}
}

// serversShape is an object of entries, or a list of entries that hold their names.
func serversShape() shape {
	server, name := shape{"$ref": "#/$defs/server"}, shape{"$ref": "#/$defs/name"}
	named := shape{"allOf": []shape{server}, "required": []string{"name"}, "properties": shape{"name": name}}
	return anyOf(
		shape{"type": "object", "maxProperties": MaxServers, "propertyNames": name, "additionalProperties": server},
		shape{"type": "array", "maxItems": MaxServers, "items": named},
	)
}

// serverShape is an entry: a command or a url, not both. Neither is needed if it is disabled.
func serverShape() shape {
	e := &entry{Server: newServer("")}
	form := e.keys().shape()
	required := func(name string) shape { return shape{"required": []string{name}} }
	urls := []shape{required("url")}
	for _, alias := range slices.Sorted(maps.Keys(aliases())) {
		if aliases()[alias] == "url" {
			urls = append(urls, required(alias))
		}
	}
	off := func(name string, value bool) shape {
		return shape{"required": []string{name}, "properties": shape{name: shape{"const": value}}}
	}
	form["if"] = anyOf(off("disabled", true), off("enabled", false))
	form["else"] = shape{"oneOf": []shape{required("command"), {"anyOf": urls}}}
	return form
}
