package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"

	"mcpbridge/bridge/seal"
)

var update = flag.Bool("update", false, "write schema.json anew")

// noLoader reads nothing: a schema must be complete in itself.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) { return nil, errors.New("asked to load " + url) }

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource("mem:schema", document); err != nil {
		return nil, err
	}
	return compiler.Compile("mem:schema")
})

// validate checks a text against the schema, as an editor would that knows comments and trailing commas.
func validate(t *testing.T, text string) error {
	t.Helper()
	schema, err := compiled()
	if err != nil {
		t.Fatalf("the schema does not compile: %v", err)
	}
	plain, err := hujson.Standardize([]byte(strings.TrimPrefix(text, "\ufeff") + "\n"))
	if err != nil {
		t.Fatalf("%.50s: %v", text, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The file that is shipped is the one that is made.
func TestSchemaFile(t *testing.T) {
	if *update {
		if err := os.WriteFile("schema.json", Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, "schema.json") != string(Schema()) {
		t.Error("schema.json is not what Schema returns; run `go test ./config -run TestSchemaFile -update`")
	}
	if !bytes.Equal(Schema(), Schema()) {
		t.Error("it differs from call to call")
	}
}

// Every key that is read is in the schema with a description; objects that are all ours are closed.
func TestSchemaDescribesEveryKey(t *testing.T) {
	var document struct {
		Schema     string `json:"$schema"`
		Properties map[string]map[string]any
		Defs       map[string]struct{ Properties map[string]map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &document); err != nil {
		t.Fatal(err)
	}
	if document.Schema != "https://json-schema.org/draft/2020-12/schema" {
		t.Error(document.Schema)
	}
	described := func(place string, properties map[string]map[string]any, keys settings) {
		if len(properties) != len(keys) {
			t.Errorf("%s: %d properties for %d keys", place, len(properties), len(keys))
		}
		for _, name := range keys.names() {
			if text, _ := properties[name]["description"].(string); len(text) < 12 || !strings.HasSuffix(text, ".") {
				t.Errorf("%s%s: description %q", place, name, text)
			}
		}
	}
	f := &file{}
	described("", document.Properties, f.rootKeys(newConfig()))
	described("mcpServers.", document.Defs["server"].Properties, (&entry{}).keys())
	for name, keys := range map[string]settings{"limits": limitKeys(&Limits{}), "log": logKeys(&Log{})} {
		inner, _ := document.Properties[name]["properties"].(map[string]any)
		if len(inner) != len(keys) || document.Properties[name]["additionalProperties"] != false {
			t.Errorf("%s: %v", name, document.Properties[name])
		}
	}
	if got := document.Properties["limits"]["properties"].(map[string]any)["queueWait"].(map[string]any)["default"]; got != "10s" {
		t.Errorf("default of queueWait is %v", got)
	}
}

// The schema takes what the reader takes.
func TestSchemaTakesGoodFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonc")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	texts := []string{`{}`, `{"$schema": "x", "anything": [1], "mcpServers": {}}`, `{"listen": "unix:///x"}`, `{"listen": "[::1]:0"}`, `{"allowedOrigins": ["null"]}`,
		`{"mcpServers": {"s": {"disabled": true}}, "servers": [{"name": "t", "enabled": false}]}`,
		`{"mcpServers": {"s": {"command": "x", "timeout": 60, "foreign": {}, "cache": {"ttlMs": 5}}}}`,
		`{"mcpServers": {"s": {"url": "https://h/", "idleStop": "+1.5h.5m3µs4μs", "restart": {"breaker": "1000/1h2m"}}}}`,
	}
	for _, path := range files {
		texts = append(texts, read(t, path))
	}
	for _, text := range texts {
		c, _, err := parse(t, text)
		if err != nil {
			t.Errorf("%.60s: %v", text, err)
			continue
		}
		for _, s := range c.Servers {
			if s.Problem != nil {
				t.Errorf("%.60s: %v", text, s.Problem)
			}
		}
		if err := validate(t, text); err != nil {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// Reader and schema agree about what is wrong.
func TestSchemaRefusesWrongFiles(t *testing.T) {
	entry := func(members string) string { return `{"mcpServers":{"s":{` + members + `}}}` }
	for _, text := range []string{
		`[]`, `5`, `{"listen": []}`, `{"listen": 8420}`, `{"listen": "127.0.0.1"}`, `{"listen": ["[::1]:1", "[::1]:1"]}`, `{"allowedHosts": "x"}`, `{"allowedHosts": ["http://x"]}`,
		`{"allowedHosts": [""]}`, `{"allowedOrigins": ["https://x/"]}`, `{"allowedOrigins": ["x"]}`,
		`{"limits": 5}`, `{"limits": {"sesions": 1}}`, `{"limits": {"sessions": 0}}`, `{"limits": {"sessions": 1000001}}`, `{"limits": {"bodyBytes": 1.5}}`,
		`{"limits": {"queueWait": 10}}`, `{"limits": {"queueWait": "10"}}`, `{"limits": {"shutdown": "0s"}}`, `{"limits": {"shutdown": "-1s"}}`, `{"limits": {"sessionIdle": "1 m"}}`,
		`{"limits": {"sessionLife": "7d"}}`, `{"limits": {"sessionLife": ""}}`,
		`{"log": {"level": "warning"}}`, `{"log": {"colour": true}}`, `{"log": {"keep": -1}}`, `{"log": {"file": 5}}`,
		`{"stateDir": 5}`, `{"stateDir": ""}`, `{"control": ""}`, `{"control": "/` + strings.Repeat("x", MaxControlBytes) + `"}`, `{"keys": []}`, `{"keys": "x"}`, `{"keys": [5]}`, `{"keys": [""]}`,
		`{"keys": [` + repeat(`"%064d"`, seal.MaxKeys+1) + `]}`,
		`{"tls": {}}`, `{"auth": {}}`, `{"$schema": 5}`, `{"mcpServers": 5}`, `{"servers": "x"}`, `{"mcpServers": {"s": 5}}`, `{"mcpServers": [{"command": "x"}]}`, `{"mcpServers": [{"name": "..", "command": "x"}]}`,
		entry(``), entry(`"command":"x","url":"https://h/"`), entry(`"command":5`), entry(`"command":""`), entry(`"command":[]`), entry(`"command":[5]`), entry(`"args":["x"]`),
		entry(`"command":"x","args":"y"`), entry(`"command":"x","args":[1]`), entry(`"command":"x","env":{"A=B":""}`), entry(`"command":"x","env":{"A":true}`), entry(`"command":"x","env":[]`),
		entry(`"command":"x","cwd":5`), entry(`"command":"x","lazy":"yes"`), entry(`"command":"x","disabled":1`), entry(`"command":"x","inheritEnv":"true"`), entry(`"command":"x","required":0`),
		entry(`"command":"x","isolation":"alone"`), entry(`"command":"x","protocol":"new"`), entry(`"command":"x","idleStop":10`), entry(`"command":"x","timeout":"10"`), entry(`"command":"x","startTimeout":null`),
		entry(`"command":"x","spare":9`), entry(`"command":"x","spare":-1`), entry(`"command":"x","maxProcesses":0`), entry(`"command":"x","maxProcesses":1001`), entry(`"command":"x","logLevel":"warn"`),
		entry(`"command":"x","restart":{"maximum":"1s"}`), entry(`"command":"x","restart":{"breaker":"5"}`), entry(`"command":"x","restart":{"breaker":"05/1s"}`), entry(`"command":"x","restart":{"breaker":"5/0s"}`), entry(`"command":"x","restart":{"initial":1}`),
		entry(`"command":"x","cache":{"scope":"all"}`), entry(`"command":"x","cache":{"ttlMs":-1}`), entry(`"command":"x","cache":{"ttl":1}`), entry(`"command":"x","mirror":{"t":{"p":"Bad Name"}}`), entry(`"command":"x","mirror":{"t":5}`),
		entry(`"url":5`), entry(`"url":""`), entry(`"url":"https://h/","headers":{"X Y":"1"}`), entry(`"url":"https://h/","headers":{"X":"a\nb"}`), entry(`"url":"https://h/","headers":{"X":1}`), entry(`"url":"https://h/","allowHttp":"no"`),
		entry(`"command":"x","tools":{"deny":["a"]}`), entry(`"command":"x","tools":["a"]`), entry(`"command":"x","validate":{"input":true}`), entry(`"command":"x","rate":{"perPrincipal":"20/s"}`),
		entry(`"command":"x","attribution":"exact"`), entry(`"command":"x","roots":"/"`), entry(`"command":"x","sse":1`), entry(`"command":"x","profile":"none"`), entry(`"command":"x","ask":[]`), entry(`"url":"https://h/","oauth":"x"`),
		entry(`"command":"x","tasks":"on"`), entry(`"command":"x","overDeclare":null`), entry(`"command":"x","restartReads":1`),
	} {
		c, _, err := parse(t, text)
		if err == nil && (len(c.Servers) == 0 || c.Servers[0].Problem == nil) {
			t.Errorf("the reader takes %s", text)
		}
		if validate(t, text) == nil {
			t.Errorf("the schema takes %s", text)
		}
	}
}
