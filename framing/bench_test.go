package framing_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"mcpbridge/framing"
)

func benchScan(b *testing.B, text string) {
	raw := []byte(text)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		m, err := framing.Scan(raw)
		if err != nil {
			b.Fatal(err)
		}
		sink = m
	}
}

func result(s string) string {
	return `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + s + `"}]}}`
}

const mib = 1 << 20

func BenchmarkScanSmall(b *testing.B) { benchScan(b, smallRequest) }

func BenchmarkScanTools18K(b *testing.B) {
	tool := `{"name":"read_file","description":"Read a file from disk, with offset and limit, and return its \"text\".","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Where"},"limit":{"type":"integer","minimum":0}},"required":["path"]}}`
	n := 18 << 10 / len(tool)
	benchScan(b, `{"jsonrpc":"2.0","id":1,"result":{"tools":[`+strings.Repeat(tool+",", n-1)+tool+`]}}`)
}

func BenchmarkScanASCII1M(b *testing.B) {
	benchScan(b, result(strings.Repeat("The quick brown fox. ", mib/21)))
}
func BenchmarkScanEscapes1M(b *testing.B) { benchScan(b, result(strings.Repeat(`a\nb\"c\\`, mib/9))) }
func BenchmarkScanUnicode1M(b *testing.B) {
	benchScan(b, result(strings.Repeat(`\u00e9\ud83d\ude00`, mib/18)))
}
func BenchmarkScanCJK1M(b *testing.B) {
	benchScan(b, result(strings.Repeat("読むファイル", mib/18)))
}
func BenchmarkScanMixed1M(b *testing.B) {
	benchScan(b, result(strings.Repeat("Größe café ", mib/13)))
}
func BenchmarkScanEmoji1M(b *testing.B)   { benchScan(b, result(strings.Repeat("🎉😀", mib/8))) }
func BenchmarkScanSlashes1M(b *testing.B) { benchScan(b, result(strings.Repeat(`\\`, mib/2))) }
func BenchmarkScanLines1M(b *testing.B) {
	benchScan(b, result(strings.Repeat(`\tif err != nil { return err }\n`, mib/31)))
}
func BenchmarkScanNumbers1M(b *testing.B) {
	benchScan(b, `{"jsonrpc":"2.0","id":1,"result":[`+strings.Repeat("12345.678,", mib/10)+`0]}`)
}
func BenchmarkScanMembers1M(b *testing.B) { benchScan(b, manyMembers(mib)) }

func manyMembers(size int) string {
	var s strings.Builder
	s.WriteString(`{"jsonrpc":"2.0","id":1,"result":{"_":0`)
	for i := 0; s.Len() < size; i++ {
		s.WriteString(`,"member`)
		s.WriteString(strings.Repeat("x", i%3))
		for n := i; n > 0; n /= 10 {
			s.WriteByte(byte('0' + n%10))
		}
		s.WriteString(`x":0`)
	}
	return s.String() + "}}"
}

func BenchmarkScanRewriteSmall(b *testing.B) {
	raw := []byte(smallRequest)
	b.ReportAllocs()
	for b.Loop() {
		m, err := framing.Scan(raw)
		if err != nil {
			b.Fatal(err)
		}
		var room [4]framing.Edit
		edits := append(room[:0], framing.Edit{At: m.ID, New: []byte("77")})
		edits = framing.EditObject(edits, raw, m.Meta, m.MetaMembers(), framing.Op{Name: "progressToken", Value: []byte("99")})
		frame = framing.Rewrite(raw, edits)
	}
}

var frame framing.Frame

func benchReader(b *testing.B, line string, lines int) {
	text := []byte(strings.Repeat(line+"\n", lines))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r := framing.NewReader(bytes.NewReader(text), 64*mib)
		n := 0
		for {
			_, _, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != lines {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}

func BenchmarkReader100B(b *testing.B) { benchReader(b, strings.Repeat("x", 100), 10_000) }
func BenchmarkReader64K(b *testing.B)  { benchReader(b, strings.Repeat("x", 64<<10), 100) }
func BenchmarkReader1M(b *testing.B)   { benchReader(b, strings.Repeat("x", mib), 16) }
func BenchmarkReader16M(b *testing.B)  { benchReader(b, strings.Repeat("x", 16*mib), 2) }

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

type discardTry struct{ discard }

func (discardTry) TryWrite(p []byte) (int, error) { return len(p), nil }

func benchWriter(b *testing.B, w io.Writer, size int, parallel bool) {
	f := framing.Whole(bytes.Repeat([]byte("x"), size))
	q := framing.NewWriter(w, 4*mib)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	ctx := context.Background()
	if parallel {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := q.Write(ctx, f); err != nil {
					b.Error(err)
				}
			}
		})
	} else {
		for b.Loop() {
			if err := q.Write(ctx, f); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := q.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkWriterDirect(b *testing.B)   { benchWriter(b, discardTry{}, 160, false) }
func BenchmarkWriterQueued(b *testing.B)   { benchWriter(b, discard{}, 160, false) }
func BenchmarkWriterParallel(b *testing.B) { benchWriter(b, discardTry{}, 160, true) }
func BenchmarkWriter1M(b *testing.B)       { benchWriter(b, discard{}, mib, false) }
