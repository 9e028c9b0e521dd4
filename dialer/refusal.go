package dialer

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
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

// saidIn returns the first line of the body of a refusal, fit for a log: text in quotes, JSON on one line. It returns ""
// if
//
//   - the body is not a short text/plain or JSON,
//   - the line is not printable, or says no more than the status,
//   - a part of one of the secrets is in the line, because some servers repeat what they refuse.
func saidIn(resp *http.Response, secrets []string) string {
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
	if text == "" || isStatus || !isPrintable(text) || repeats(text, secrets) {
		return ""
	}
	if len(text) > maxSaid {
		cut := maxSaid
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "..."
	}
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

// secrets returns those parts of the handshake that only the server should see: the user and the query of the URL, the
// values of the header, and the subprotocols.
func (r *request) secrets(subprotocols []string) (all []string) {
	password, _ := r.url.User.Password()
	all = append(all, password, r.url.User.Username())
	for pair := range strings.SplitSeq(r.url.RawQuery, "&") {
		if _, value, ok := strings.Cut(pair, "="); ok {
			pair = value
		}
		decoded, _ := url.QueryUnescape(pair)
		all = append(all, pair, decoded)
	}
	for name, values := range r.header {
		if name == "Host" || name == "Origin" || name == "User-Agent" {
			continue
		}
		for _, v := range values {
			if _, credentials, ok := strings.Cut(v, " "); ok && strings.HasSuffix(name, "Authorization") {
				v = credentials // behind the scheme
			}
			all = append(append(all, v), strings.FieldsFunc(v, func(c rune) bool { return strings.ContainsRune(` ;,="`, c) })...)
		}
	}
	user, password, _ := (&http.Request{Header: r.header}).BasicAuth()
	return append(append(all, user, password), subprotocols...)
}

// repeats reports whether a part of a secret is in text: any 8 bytes of the secret, or all of it if it has 3 to 7.
func repeats(text string, secrets []string) bool {
	text = strings.ToLower(text)
	for _, s := range secrets {
		s = strings.ToLower(s)
		for n := min(len(s), 8); n >= 3 && len(s) >= n; s = s[1:] {
			if strings.Contains(text, s[:n]) {
				return true
			}
		}
	}
	return false
}
