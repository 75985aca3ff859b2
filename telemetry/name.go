package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// maxStem is the longest file name made of a server's name, without what follows it. Systems take 255 bytes in all.
const maxStem = 200

// fileName is the name of the file for a server: its name percent-encoded, so that it names one file in one folder on every system.
// What is too long is cut and gets a digest; "%~", which the encoding never writes, keeps such names apart from all others.
func fileName(server string) string {
	stem := strings.ReplaceAll(url.PathEscape(server), ":", "%3A")
	if first, _, _ := strings.Cut(stem, "."); device(first) {
		stem = "%" + strings.ToUpper(hex.EncodeToString([]byte(stem[:1]))) + stem[1:]
	}
	if len(stem) > maxStem {
		sum := sha256.Sum256([]byte(server))
		end := hex.EncodeToString(sum[:8])
		stem = stem[:maxStem-len(end)-2] + "%~" + end
	}
	return stem + ".log"
}

// device reports whether Windows takes a file of that name for a device, whatever follows behind a dot.
func device(name string) bool {
	name = strings.ToUpper(name)
	switch name {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(name) == 4 && (name[:3] == "COM" || name[:3] == "LPT") && name[3] >= '0' && name[3] <= '9'
}
