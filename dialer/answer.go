package dialer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// answerError is an HTTP answer that refuses: the server's to the handshake, or a proxy's to
// CONNECT.
type answerError struct {
	code   int
	wait   time.Duration // Retry-After
	header http.Header
	text   string
}

func (a *answerError) Error() string { return a.text }

// newAnswerError returns an answerError whose text is the status and, if about is not
// empty, a colon and about.
func newAnswerError(resp *http.Response, about string) *answerError {
	text := statusText(resp.StatusCode)
	if about != "" {
		text += ": " + about
	}
	return &answerError{code: resp.StatusCode, wait: retryAfter(resp.Header), header: resp.Header, text: text}
}

// refusal returns the error for an answer other than 101 to the handshake r; behind is the data that came together
// with the header.
func refusal(r *request, resp *http.Response, behind []byte) *answerError {
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return newAnswerError(resp, "not a WebSocket endpoint")
	case code >= 300 && code < 400:
		return newAnswerError(resp, redirected(r, resp.Header.Get("Location")))
	case code == http.StatusBadRequest && r.url.Scheme == "ws" && strings.Contains(string(behind), "HTTPS"):
		// nginx and Go answer so to a client without TLS. They send header and body
		// together, so there is no need to wait for a body.
		return newAnswerError(resp, "is this a wss server?")
	}
	return newAnswerError(resp, saidIn(resp, r.secrets))
}

// redirected returns a text that says where a redirect leads and what to do about it. The user, the query,
// and the secrets of r are left out.
func redirected(r *request, location string) string {
	to, err := r.url.Parse(location)
	if err != nil || location == "" {
		return "redirected, but the answer does not say where to: ask the operator of the server for the right URL"
	}
	switch to.Scheme {
	case "http":
		to.Scheme = "ws"
	case "https":
		to.Scheme = "wss"
	}
	where := strconv.Quote(r.secrets.print(withoutQuery(to)))
	return fmt.Sprintf(
		"redirected to %s, and redirects are not followed: if that is the right server, make it the URL",
		where,
	)
}

// retryAfter returns how long the sender of an answer asks us to stay away, by its own
// clock if it says what time it is.
func retryAfter(h http.Header) time.Duration {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	wait, _ := backoff.ParseRetryAfter(h.Get("Retry-After"), now)
	return wait
}

// writers has the buffers of writeRequest.
var writers = sync.Pool{New: func() any { return bufio.NewWriter(nil) }}

// writeRequest writes r to c.
func writeRequest(c io.Writer, r *http.Request) error {
	bw := writers.Get().(*bufio.Writer)
	bw.Reset(c)
	defer func() {
		bw.Reset(nil)
		writers.Put(bw)
	}()
	if err := r.Write(bw); err != nil {
		return err
	}
	return bw.Flush()
}

// maxHeader is the limit on the header of an answer, in bytes: far above any handshake.
const maxHeader = 64 << 10

// readers has the buffers of readAnswer.
var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// readAnswer reads the header of the answer to r from c: at most maxHeader bytes, with the
// informational answers before it (RFC 9110, section 15.2). It also returns a copy of the data that
// came together with the header, and never waits for more. The body of a refusal has only what
// is in that data; no other body can be read.
func readAnswer(c io.Reader, r *http.Request) (resp *http.Response, behind []byte, err error) {
	br := readers.Get().(*bufio.Reader)
	defer func() { br.Reset(nil); readers.Put(br) }()
	limited := &io.LimitedReader{R: c, N: maxHeader}
	br.Reset(limited)
	for {
		resp, err = http.ReadResponse(br, r)
		switch {
		case err != nil && limited.N <= 0:
			text := fmt.Sprintf("the header of the answer exceeds %d bytes", maxHeader)
			return nil, nil, &slowError{cause{text, err}, true}
		case err == io.ErrUnexpectedEOF && limited.N == maxHeader:
			return nil, nil, io.EOF // nothing came at all
		case err != nil:
			return nil, nil, err
		case resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols:
			behind, _ = br.Peek(br.Buffered())
			behind = bytes.Clone(behind)
			if resp.StatusCode >= 400 {
				limited.N = 0 // so that the next line does not wait
				body, _ := io.ReadAll(resp.Body)
				resp.Body = io.NopCloser(bytes.NewReader(body))
			}
			return resp, behind, nil
		}
	}
}
