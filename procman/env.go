package procman

import (
	"slices"
	"strings"
)

// BaseEnv picks from environ ("K=V") the base set of variables that every child gets (case 83, STD-11): PATH HOME LANG
// LC_* TMPDIR TMP TEMP USER LOGNAME SHELL TERM TZ XDG_*, and on Windows also SystemRoot windir SystemDrive ComSpec
// PATHEXT APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES* USERPROFILE HOMEDRIVE HOMEPATH USERNAME NUMBER_OF_PROCESSORS
// PROCESSOR_ARCHITECTURE OS, whatever their case. Nothing else passes, in particular nothing of the bridge's own.
func BaseEnv(environ []string) []string {
	var base []string
	for _, kv := range environ {
		if name, _, ok := cutVar(kv); ok && isBase(foldName(name)) {
			base = append(base, kv)
		}
	}
	return base
}

func isBase(name string) bool {
	if slices.Contains(baseNames, name) {
		return true
	}
	return slices.ContainsFunc(basePrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// cutVar splits "K=V". Windows has names that begin with "=" ("=C:"), which are nobody's to pass on.
func cutVar(kv string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(kv, "=")
	return name, value, ok && name != ""
}

// lookupVar returns the value that holds for name in env: the last one.
func lookupVar(env []string, name string) (string, bool) {
	name = foldName(name)
	for _, kv := range slices.Backward(env) {
		if k, v, ok := cutVar(kv); ok && foldName(k) == name {
			return v, true
		}
	}
	return "", false
}

// childEnv is what the child really gets: one entry a name, the last one given, and the marker in front.
func childEnv(env []string, marker string) []string {
	out := make([]string, 0, len(env)+1)
	seen := make(map[string]bool, len(env)+1)
	seen[foldName(MarkVar)] = true // a marker of somebody else says something false about this child
	for _, kv := range slices.Backward(env) {
		k, _, ok := cutVar(kv)
		if ok && !seen[foldName(k)] {
			seen[foldName(k)] = true
			out = append(out, kv)
		}
	}
	if marker != "" {
		out = append(out, MarkVar+"="+marker)
	}
	slices.Reverse(out)
	return out
}
