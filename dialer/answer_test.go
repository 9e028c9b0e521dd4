package dialer

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

func text(code int, body string) conntest.Answer {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) }
}

// What a person needs is in the text, what a program needs in the fields.
func TestAnswersAreExplained(t *testing.T) {
	for want, c := range map[string]struct {
		answer conntest.Answer
		code   int
		class  backoff.Class
	}{
		"200 OK: not a WebSocket endpoint": {text(200, "welcome"), 200, backoff.ClassSlow},
		"300 Multiple Choices: redirected, but the answer does not say where to: " +
			"ask the operator of the server for the right URL": {
			text(300, ""), 300, backoff.ClassSlow,
		},
		"401 Unauthorized":                       {text(401, "unauthorized"), 401, backoff.ClassSlow},
		`401 Unauthorized: "token expired"`:      {text(401, "token expired\nask for another"), 401, backoff.ClassSlow},
		"404 Not Found":                          {text(404, ""), 404, backoff.ClassSlow},
		"410 Gone":                               {text(410, ""), 410, backoff.ClassStop},
		"426 Upgrade Required":                   {text(426, ""), 426, backoff.ClassSlow},
		"503 Service Unavailable":                {text(503, ""), 503, backoff.ClassOverload},
		"599":                                    {text(599, ""), 599, backoff.ClassRetry},
		`400 Bad Request: "no"`:                  {text(400, "no"), 400, backoff.ClassSlow},
		"400 Bad Request: is this a wss server?": {text(400, "The plain HTTP request was sent to HTTPS port"), 400, backoff.ClassSlow},
		`302 Found: redirected to "ws://other.example/x", and redirects are not followed: if that is the right server, make it the URL`:      {http.RedirectHandler("ws://u:p@other.example/x?token=s", http.StatusFound).ServeHTTP, 302, backoff.ClassSlow},
		`302 Found: redirected to "ws://server.example/login", and redirects are not followed: if that is the right server, make it the URL`: {http.RedirectHandler("/login?token=s", http.StatusFound).ServeHTTP, 302, backoff.ClassSlow},
		"302 Found: redirected, but the answer does not say where to: ask the operator of the server for the right URL":                      {conntest.Status(302, http.Header{"Location": {"http://u:p@h:x/?token=s"}}), 302, backoff.ClassSlow},
		"answered with TLS: is this a wss server?":              {conntest.Garbage([]byte("\x15\x03\x01\x00\x02\x02\x0a")), 0, backoff.ClassSlow},
		`malformed HTTP response "SSH-2.0-OpenSSH_9.2\x1b[31m"`: {conntest.Garbage([]byte("SSH-2.0-OpenSSH_9.2\x1b[31m\n\n")), 0, backoff.ClassSlow},
		"connection closed during the handshake: EOF":           {conntest.HangUp, 0, backoff.ClassRetry},
		`302 Found: redirected to "wss://server.example:443/", and redirects are not followed: if that is the right server, make it the URL`: {http.RedirectHandler("https://server.example:443/", http.StatusFound).ServeHTTP, 302, backoff.ClassSlow},
	} {
		t.Run(want, func(t *testing.T) {
			withServer(t, func(t *testing.T, v *wsServer) {
				v.Next(c.answer)
				e := v.fail(t, t.Context(), 0)
				require.EqualError(t, e, "dial ws://server.example/feed: "+want)
				require.Equal(t, c.code, e.StatusCode)
				require.Equal(t, c.class, backoff.Classify(e).Class)
			})
		})
	}
}

// Only a peer that ends the connection without an answer is an EOF.
func TestWhatEndsTheConnectionIsTheErrorOfTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		from io.Reader
		want error
	}{
		"no answer":      {strings.NewReader(""), io.EOF},
		"half an answer": {strings.NewReader("HTTP/1.1 101 Swi"), io.ErrUnexpectedEOF},
		"a reset":        {iotest.ErrReader(syscall.ECONNRESET), syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readAnswer(c.from, &http.Request{Method: http.MethodGet})
			require.Equal(t, c.want, err)
		})
	}
}

func TestErrorHasHeaderOfResponse(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(conntest.Status(401, http.Header{"Www-Authenticate": {"Nonce abc"}}), conntest.BadAccept)
		e := v.fail(t, t.Context(), 0)
		require.Equal(t, "Nonce abc", e.Header.Get("WWW-Authenticate"))
		require.NotContains(t, fmt.Sprintf("%v %+v", e, e), "abc")
		e = v.fail(t, t.Context(), 0)
		require.Equal(t, 101, e.StatusCode)
		require.Equal(t, "websocket", e.Header.Get("Upgrade"))
	})
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Close()
		require.Nil(t, v.fail(t, t.Context(), 0).Header)
	})
}

func TestAcceptedGetsHeaderOfResponse(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(conntest.Status(503, nil), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Set-Cookie", "node=7")
			v.Accept(w, r)
		})
		var headers []http.Header
		ctx := backoff.WithAttempt(t.Context(), backoff.Attempt{
			Accepted: func(header map[string][]string) { headers = append(headers, header) },
		})
		v.fail(t, ctx, 0)
		require.Empty(t, headers, "a rejection")
		c, err := v.dialer.Dial(ctx)
		require.NoError(t, err)
		c.CloseNow()
		require.Len(t, headers, 1)
		require.Equal(t, []string{"node=7"}, headers[0]["Set-Cookie"])
	})
}

func TestRetryAfterIsRead(t *testing.T) {
	for name, header := range map[string]func(now time.Time) http.Header{
		"seconds": func(time.Time) http.Header { return conntest.RetryAfter("7") },
		"date": func(now time.Time) http.Header {
			return conntest.RetryAfter(now.Add(7 * time.Second).UTC().Format(http.TimeFormat))
		},
		"epoch": func(now time.Time) http.Header {
			return conntest.RetryAfter(strconv.FormatInt(now.Add(7*time.Second).Unix(), 10))
		},
		"date by the server's clock": func(now time.Time) http.Header {
			h := conntest.RetryAfter(now.Add(time.Hour + 7*time.Second).UTC().Format(http.TimeFormat))
			h.Set("Date", now.Add(time.Hour).UTC().Format(http.TimeFormat))
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, v *wsServer) {
				v.Next(conntest.Status(503, header(time.Now())))
				e := v.fail(t, t.Context(), 0)
				require.EqualError(t, e, "dial ws://server.example/feed: 503 Service Unavailable (retry after 7s)")
				require.Equal(t, backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: 7 * time.Second}, backoff.Classify(e))
			})
		})
	}
}

// A redirect loop is one request, and another host hears nothing of us, whether it
// would answer, refuse or hang.
func TestARedirectIsRefusedAtOnce(t *testing.T) {
	const advice = ", and redirects are not followed: if that is the right server, make it the URL"
	for location, want := range map[string]string{
		"":                                `redirected to "ws://server.example/"` + advice,
		"https://elsewhere.example/a?b=c": `redirected to "wss://elsewhere.example/a"` + advice,
		"feed/":                           `redirected to "ws://server.example/feed/"` + advice,
		"/no/qsecret":                     `redirected to "ws://server.example/no/..."` + advice,
		"/no/token.psecret":               `redirected to "ws://server.example/no/..."` + advice,
		"http://[::1":                     "redirected, but the answer does not say where to: ask the operator of the server for the right URL", // net/http would return an error of its own
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.network.Fault("elsewhere.example:80", conntest.Fault{Hang: true})
			v.dialer.Subprotocols = []string{"token.psecret"}
			requests := 0
			v.Next(func(w http.ResponseWriter, r *http.Request) {
				requests++
				http.Redirect(w, r, location, http.StatusFound)
			})
			e := v.fail(t, t.Context(), 0)
			require.EqualError(t, e, "dial ws://server.example/feed: 302 Found: "+want)
			require.Equal(t, 302, e.StatusCode)
			require.Equal(t, 1, requests)
			require.Len(t, v.network.Dials(""), 1)
		})
	}
}

// withheldBody answers with a header that announces a body, and no body.
func withheldBody(code int) conntest.Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(code)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func TestTheStatusCountsAtOnceWhenTheBodyIsWithheld(t *testing.T) {
	for _, code := range []int{200, 302, 400, 401, 503} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.Next(withheldBody(code))
			require.Equal(t, code, v.fail(t, t.Context(), 0).StatusCode)
		})
	}
}

func TestErrorMadeByHandIsClassified(t *testing.T) {
	e := &Error{Endpoint: "wss://host/path", StatusCode: 503, RetryAfter: 7 * time.Second, Err: syscall.EPIPE}
	require.EqualError(t, e, "dial wss://host/path: broken pipe (retry after 7s)")
	require.ErrorIs(t, e, syscall.EPIPE)
	require.EqualError(t, e.Unwrap(), "wss://host/path: broken pipe (retry after 7s)")
	require.Equal(t, backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: 7 * time.Second}, backoff.Classify(e))
}

// The buffer in which a header was read is used again, while what came together with the header is still unread.
func TestDataBehindAnswerOutlivesItsBuffer(t *testing.T) {
	const header = "HTTP/1.1 101 Switching Protocols\r\n\r\n"
	_, first, err := readAnswer(strings.NewReader(header+"one"), nil)
	require.NoError(t, err)
	_, _, err = readAnswer(strings.NewReader(header+"two"), nil)
	require.NoError(t, err)
	require.Equal(t, "one", string(first))
}
