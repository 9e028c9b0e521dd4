package debug

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"html"
	"net/http"
	"strings"
)

// token is Options.Token. It is not kept as it is, so that it cannot be printed.
type token struct {
	sum    [sha256.Size]byte // of the token
	cookie http.Cookie       // what a browser gets for it
}

// newToken returns the token for a text, or nil if text is empty.
func newToken(text string) *token {
	if text == "" {
		return nil
	}
	derived := func(use string) string {
		h := hmac.New(sha256.New, []byte(text))
		h.Write([]byte("redial debug " + use))
		return hex.EncodeToString(h.Sum(nil))
	}
	// A browser sends a cookie to every port of a host, so the cookie is not the token, and its name is
	// different for pages with different tokens.
	return &token{sha256.Sum256([]byte(text)), http.Cookie{
		Name: "redial-debug-" + derived("name")[:8], Value: derived("cookie"),
		Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}}
}

// is reports whether text is the token. The time that it takes does not depend on the token.
func (t *token) is(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(sum[:], t.sum[:]) == 1
}

// isLink reports whether r is for a link that has a token.
func (t *token) isLink(r *http.Request) bool { return t != nil && r.URL.Query().Has("token") }

// in reports whether r has the token: in a link, in the header, or as the cookie. A nil token is in every
// request.
func (t *token) in(r *http.Request) bool {
	if t == nil {
		return true
	}
	if t.isLink(r) {
		return t.is(r.URL.Query().Get("token"))
	}
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return t.is(strings.TrimSpace(text))
	}
	for _, c := range r.CookiesNamed(t.cookie.Name) {
		if subtle.ConstantTimeCompare([]byte(c.Value), []byte(t.cookie.Value)) == 1 {
			return true
		}
	}
	return false
}

// serveCookie gives the browser the cookie, and has it load the page without the token in its URL. A redirect
// would not do, because after a link from another site it would be loaded without the cookie.
func (t *token) serveCookie(w http.ResponseWriter, r *http.Request) {
	c, query := t.cookie, r.URL.Query()
	c.Secure = r.TLS != nil
	http.SetCookie(w, &c)
	query.Del("token")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	next := html.EscapeString("?" + query.Encode())
	fmt.Fprintf(w, welcome, next, next)
}

// welcome is the page with the cookie; %s is where the page proper is.
const welcome = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=%s"><title>Connections</title></head>
<body><a href="%s">To the page</a></body>
</html>
`
