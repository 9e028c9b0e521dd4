package dialer

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

// refuse answers 401 with a body of a type, in chunks if it is in several parts.
func refuse(kind string, parts ...string) conntest.Answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		w.WriteHeader(401)
		for _, p := range parts {
			io.WriteString(w, p)
			if len(parts) > 1 {
				w.(http.Flusher).Flush()
			}
		}
	}
}

func TestTheFirstLineOfARefusalIsInItsError(t *testing.T) {
	const plain = "text/plain; charset=utf-8"
	packed := refuse(plain, "token expired")
	for name, c := range map[string]struct {
		answer conntest.Answer
		want   string
	}{
		"text":               {refuse(plain, "\n token expired \r\nrenew it"), `: "token expired"`},
		"JSON":               {refuse("application/json", "{\n  \"error\": \"token <old>\",\n \"code\": 10000000000000001\n}\n"), `: {"code":10000000000000001,"error":"token <old>"}`},
		"a kind of JSON":     {refuse("application/problem+json", `{"title":"no"}`), `: {"title":"no"}`},
		"quotes":             {refuse(plain, `no "login"`), `: "no \"login\""`},
		"long line":          {refuse(plain, strings.Repeat("ä", 150)), `: "` + strings.Repeat("ä", 100) + `..."`},
		"long line, cut low": {refuse(plain, "a"+strings.Repeat("ä", 150)), `: "a` + strings.Repeat("ä", 99) + `..."`},
		"no text":            {refuse(plain), ""},
		"the status":         {refuse(plain, "401 unauthorized\n"), ""},
		"a page":             {refuse("text/html", "token expired"), ""},
		"no type":            {refuse("", "token expired"), ""},
		"broken JSON":        {refuse("application/json", `{"error": "tok`), ""},
		"just not too long":  {refuse(plain, "token expired\n"+strings.Repeat("x", 1010)), `: "token expired"`},
		"too long":           {refuse(plain, "token expired\n"+strings.Repeat("x", 1011)), ""},
		"not printable":      {refuse(plain, "token \x1b[31m expired"), ""},
		"not UTF-8":          {refuse(plain, "token \xff expired"), ""},
		"compressed": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packed(w, r)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, v *wsServer) {
				v.Next(c.answer)
				require.EqualError(t, v.fail(t, t.Context(), 0), "dial ws://server.example/feed: 401 Unauthorized"+c.want)
			})
		})
	}
}

// Dial does not wait for what comes after the header. If a part of the body has come with the header, its first line is
// in the error.
func TestABodyIsNotWaitedFor(t *testing.T) {
	for begun, want := range map[string]string{"": "", "9\r\ntoken exp\r\n": `: "token exp"`} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.Next(conntest.Garbage([]byte("HTTP/1.1 401 Unauthorized\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + begun)))
			require.EqualError(t, v.fail(t, t.Context(), 0), "dial ws://server.example/feed: 401 Unauthorized"+want)
			v.Next(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(401)
				w.(http.Flusher).Flush()
				time.Sleep(time.Minute)
				io.WriteString(w, "token expired")
			})
			require.EqualError(t, v.fail(t, t.Context(), 0), "dial ws://server.example/feed: 401 Unauthorized")
		})
	}
}
