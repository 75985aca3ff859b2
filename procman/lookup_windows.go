package procman

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func isPath(command string) bool { return strings.ContainsAny(command, `\/:`) }

// findExecutable tries path with the extensions of PATHEXT (case 29), and as it is where it has one of them.
func findExecutable(path string, env []string) (string, error) {
	exts := pathExt(env)
	var first error
	for _, name := range candidates(path, exts) {
		info, err := os.Stat(name)
		if err == nil && !info.IsDir() {
			return name, nil
		}
		if err == nil {
			err = errIsDirectory
		}
		if first == nil || first == errIsDirectory {
			first = err
		}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "", errIsDirectory
	} else if err == nil {
		return "", fs.ErrPermission // a file of a kind that is not started
	}
	return "", first
}

func candidates(path string, exts []string) []string {
	var names []string
	for _, ext := range exts {
		if strings.EqualFold(filepath.Ext(path), ext) {
			names = append(names, path)
		}
	}
	for _, ext := range exts {
		names = append(names, path+ext)
	}
	return names
}

func pathExt(env []string) []string {
	list, _ := lookupVar(env, "PATHEXT")
	var exts []string
	for ext := range strings.SplitSeq(list, ";") {
		if ext = strings.TrimSpace(ext); len(ext) > 1 {
			exts = append(exts, "."+strings.TrimPrefix(ext, "."))
		}
	}
	if len(exts) == 0 {
		return []string{".com", ".exe", ".bat", ".cmd"}
	}
	return exts
}

func executableHint(string) string {
	return "give a program, or a file whose extension is in PATHEXT"
}
