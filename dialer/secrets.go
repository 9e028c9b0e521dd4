package dialer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// secrets are what only the server of a dial, or its proxy, should see: the user and the query of each URL,
// the subprotocols, and the values of the header, except for Host, Origin and User-Agent. Whatever a peer or
// a function of the user has written is printed by the method print, which leaves them out. A nil *secrets
// has none.
//
// A secret is left out where any 8 bytes of it stand in a row, or all of it if it has 3 to 7 bytes: as it is,
// escaped as in a URL, in Go or in JSON, and in upper or lower case.
type secrets struct {
	base   *secrets // has more of them; may be nil
	texts  []string
	values []string // of the header; the parts of each are secrets, too

	redact func(reason string) string // for conn.WebSocketOptions; made once, because a connection keeps it
}

// newSecrets returns secrets that have those of base. next is the Redact of the user, or nil.
func newSecrets(base *secrets, next func(reason string) string) *secrets {
	s := &secrets{base: base}
	s.redact = func(reason string) string {
		if reason = s.hide(reason, maxText); next != nil {
			reason = next(reason)
		}
		return reason
	}
	return s
}

// orBase returns s, or its base if s has nothing beyond that.
func (s *secrets) orBase() *secrets {
	if len(s.texts) == 0 && len(s.values) == 0 {
		return s.base
	}
	return s
}

// add adds the texts that are not there yet.
func (s *secrets) add(texts ...string) {
	for _, t := range texts {
		if strings.EqualFold(t, "websocket") {
			continue // transport=websocket is in each URL of Engine.IO, and many errors have the word
		}
		known := slices.Contains(s.texts, t) || s.base != nil && slices.Contains(s.base.texts, t)
		if len(t) >= minSecret && !known {
			s.texts = append(s.texts, t)
		}
	}
}

// addURL adds the user and the query of u.
func (s *secrets) addURL(u *url.URL) {
	if u.User != nil {
		password, _ := u.User.Password()
		login := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		s.add(u.User.Username(), password, login) // which net/http sends
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		if _, value, _ := strings.Cut(pair, "="); strings.Trim(value, "=") != "" { // else it may be base64
			pair = value
		}
		s.add(pair)
	}
}

// addHeader adds the values of h.
func (s *secrets) addHeader(h http.Header) {
	for name, values := range h {
		if name == "Host" || name == "Origin" || name == "User-Agent" {
			continue
		}
		for _, v := range values {
			if _, credentials, ok := strings.Cut(v, " "); ok && strings.HasSuffix(name, "Authorization") {
				v = credentials // behind the scheme
			}
			known := slices.Contains(s.values, v) || s.base != nil && slices.Contains(s.base.values, v)
			if len(v) >= minSecret && !known {
				s.values = append(s.values, v)
			}
		}
	}
	user, password, _ := (&http.Request{Header: h}).BasicAuth()
	s.add(user, password)
}

// print returns text on one line, without the secrets, cut at maxText bytes: see printable.
func (s *secrets) print(text string) string { return printable(s.hide(text, maxText)) }

const (
	minSecret = 3 // a text with fewer bytes is no secret
	window    = 8 // bytes of a longer secret that are not shown in a row
)

// hide returns the first limit bytes of text, with "..." in the place of each secret, and of what was cut.
// Its cost grows with limit and with the secrets, but not with text.
func (s *secrets) hide(text string, limit int) string {
	end := min(len(text), limit)
	for end < len(text) && end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	hidden := s.find(text[:min(len(text), end+window-1)]) // a secret may end behind the cut
	if end == len(text) && !slices.Contains(hidden, true) {
		return text
	}
	var b strings.Builder
	for i := range end {
		if !hidden[i] {
			b.WriteByte(text[i])
		} else if i == 0 || !hidden[i-1] {
			b.WriteString("...")
		}
	}
	if end < len(text) && (end == 0 || !hidden[end-1]) {
		b.WriteString("...")
	}
	return b.String()
}

// find reports for each byte of text whether it belongs to a secret.
func (s *secrets) find(text string) []bool {
	hidden := make([]bool, len(text))
	if s == nil {
		return hidden
	}
	text = lower(text)
	mark := func(from, to int) {
		for i := from; i < to; i++ {
			hidden[i] = true
		}
	}
	at := make(map[string][]int) // where each window of text stands, until it has been found in a secret
	for i := window; i <= len(text); i++ {
		at[text[i-window:i]] = append(at[text[i-window:i]], i-window)
	}
	search := func(secret string) {
		for _, form := range forms(secret) {
			for i := window; i <= len(form); i++ {
				for _, from := range at[form[i-window:i]] {
					mark(from, from+window)
				}
				delete(at, form[i-window:i])
			}
			if len(form) >= window || len(form) < minSecret {
				continue
			}
			for from := strings.Index(text, form); from >= 0; {
				mark(from, from+len(form))
				next := strings.Index(text[from+1:], form)
				if next < 0 {
					break
				}
				from += 1 + next
			}
		}
	}
	for ; s != nil; s = s.base {
		for _, t := range s.texts {
			search(t)
		}
		for _, v := range s.values {
			search(v)
			separates := func(c rune) bool { return strings.ContainsRune(` ;,="`, c) }
			for part := range strings.FieldsFuncSeq(v, separates) {
				if len(part) < window { // else it was found in v
					search(part)
				}
			}
		}
	}
	return hidden
}

// forms returns the forms in which a text in lower case may hold secret, each once.
func forms(secret string) (all []string) {
	inPath, _ := url.PathUnescape(secret)
	inQuery, _ := url.QueryUnescape(secret)
	for _, plain := range slices.Compact([]string{secret, inPath, inQuery}) {
		quoted := fmt.Sprintf("%q", plain)
		inJSON, _ := json.Marshal(plain) // a string has no error
		for _, form := range []string{
			plain, url.PathEscape(plain), url.QueryEscape(plain),
			quoted[1 : len(quoted)-1], string(inJSON[1 : len(inJSON)-1]),
		} {
			if form = lower(form); !slices.Contains(all, form) {
				all = append(all, form)
			}
		}
	}
	return all
}

// lower returns s with A to Z in lower case, and so with as many bytes as before.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
