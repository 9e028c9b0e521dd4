package dialer

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A text of a server that is longer than maxBody bytes is left out. Of its first line maxSaid bytes are kept.
const (
	maxBody = 1 << 10
	maxSaid = 200
)

// saidIn returns the first line of the body of a refusal, fit for a log: text in quotes, JSON on one line.
// The secrets are left out, because some servers repeat what they refuse. It returns "" if the body is not a
// short text/plain or JSON, or if the line is not printable or says no more than the status.
func saidIn(resp *http.Response, s *secrets) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body, _ := io.ReadAll(resp.Body)
	inJSON := kind == "application/json" || strings.HasSuffix(kind, "+json")
	if len(body) > maxBody || resp.Header.Get("Content-Encoding") != "" || !inJSON && kind != "text/plain" {
		return ""
	}
	if inJSON {
		body = onOneLine(body)
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	text = strings.TrimSpace(text)
	isStatus := strings.EqualFold(text, http.StatusText(resp.StatusCode)) || strings.EqualFold(text, statusText(resp.StatusCode))
	if text == "" || isStatus || !isPrintable(text) {
		return ""
	}
	text = s.hide(text, maxSaid)
	if inJSON {
		return text
	}
	return strconv.Quote(text)
}

// onOneLine returns JSON on one line, with no more escapes than it needs, or nil if data is not valid JSON.
func onOneLine(data []byte) []byte {
	var value any
	from := json.NewDecoder(bytes.NewReader(data))
	from.UseNumber()
	if from.Decode(&value) != nil {
		return nil
	}
	var line bytes.Buffer
	to := json.NewEncoder(&line)
	to.SetEscapeHTML(false)
	if to.Encode(value) != nil {
		return nil
	}
	return line.Bytes()
}

func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
