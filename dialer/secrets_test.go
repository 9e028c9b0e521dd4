package dialer

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// kinds are the ways in which a dial gets a secret. plant gives it to the dialer and returns what the server
// may have seen of it; the context of the dial is returned by in, unless that is nil.
var kinds = []struct {
	name  string
	token bool // the secret must be a token
	plant func(d *WebSocket, secret string) (seen []string)
	in    func(ctx context.Context, secret string) context.Context
}{
	{name: "none", plant: func(d *WebSocket, _ string) []string { d.URL = "ws://server.example/feed"; return nil }},
	{name: "user", plant: func(d *WebSocket, secret string) []string { return ofUser(d, secret, "p") }},
	{name: "password", plant: func(d *WebSocket, secret string) []string { return ofUser(d, "u", secret) }},
	{name: "query", plant: func(d *WebSocket, secret string) []string {
		d.URL = "ws://server.example/feed?token=" + url.QueryEscape(secret)
		return []string{secret, url.QueryEscape(secret)}
	}},
	{name: "query without a name", plant: func(d *WebSocket, secret string) []string {
		d.URL = "ws://server.example/feed?" + url.PathEscape(secret)
		return []string{secret, url.PathEscape(secret)}
	}},
	{name: "query of another endpoint", plant: func(d *WebSocket, secret string) []string {
		d.URL, d.URLs = "", []string{
			"ws://server.example/feed",
			"ws://server.example/b?x=1&key=" + url.QueryEscape(secret),
		}
		return []string{secret}
	}},
	{name: "bearer", plant: ofHeader("Authorization", "Bearer ", "")},
	{name: "cookie", plant: ofHeader("Cookie", "theme=dark; sid=", "; lang=en")},
	{name: "own header", plant: ofHeader("X-Key", "", "")},
	{name: "basic", plant: func(d *WebSocket, secret string) []string {
		login := base64.StdEncoding.EncodeToString([]byte("u:" + secret))
		d.Header = http.Header{"Authorization": {"Basic " + login}}
		return []string{secret, login}
	}},
	{name: "subprotocol", token: true, plant: func(d *WebSocket, secret string) []string {
		d.Subprotocols = []string{"v1", secret}
		return []string{secret}
	}},
	{name: "prepared header", plant: func(d *WebSocket, secret string) []string {
		d.Prepare = func(_ context.Context, r *Request) error { r.Header.Set("X-Key", secret); return nil }
		return []string{secret}
	}},
	{name: "prepared URL", plant: func(d *WebSocket, secret string) []string {
		d.Prepare = func(_ context.Context, r *Request) error {
			u, err := url.Parse(r.URL)
			u.RawQuery += "&key=" + url.QueryEscape(secret)
			r.URL = u.String()
			return err
		}
		return []string{secret}
	}},
	{
		name: "advised URL", plant: func(_ *WebSocket, secret string) []string { return []string{secret} },
		in: func(ctx context.Context, secret string) context.Context {
			ctx, _ = advise(ctx, "ws://server.example/feed?resume="+url.QueryEscape(secret))
			return ctx
		},
	},
	{name: "proxy", plant: func(d *WebSocket, secret string) []string {
		d.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxyAddr, User: url.UserPassword("u", secret)})
		return []string{secret, base64.StdEncoding.EncodeToString([]byte("u:" + secret))}
	}},
	{name: "proxy header", plant: func(d *WebSocket, secret string) []string {
		d.ProxyHeader = http.Header{"X-Proxy-Key": {secret}}
		return []string{secret}
	}},
}

// unknown are the routes on which a secret of that kind is not known yet, or that need what the kind needs.
var unknown = map[string][]string{
	"prepared header": {"advised host", "header of Validate, secret as key"},
	"prepared URL":    {"advised host", "header of Validate, secret as key"},
	"advised URL":     {"advised host", "advised path", "header of Validate, secret as key"},
	"proxy": {
		"advised host", "Prepare", "header of Validate, secret as key", "header of Prepare, secret as key",
	},
}

func ofUser(d *WebSocket, user, password string) []string {
	u := url.URL{
		Scheme: "ws",
		User:   url.UserPassword(user, password),
		Host:   "server.example",
		Path:   "/feed",
	}
	d.URL = u.String()
	login := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	if user == "u" {
		return []string{password, login}
	}
	return []string{user, login}
}

func ofHeader(name, before, after string) func(d *WebSocket, secret string) []string {
	return func(d *WebSocket, secret string) []string {
		d.Header = http.Header{name: {before + secret + after}}
		return []string{secret}
	}
}

// leak is a dial during which a peer or a user function repeats a secret.
type leak struct {
	*wsServer
	proxy *proxyServer // or nil
	ctx   context.Context
}

// routes are the ways by which a text of a peer, or of a function of the user, reaches what is printed. take
// dials, sends words by this way, and returns what was printed.
var routes = []struct {
	name  string
	shows bool // the words, as far as they are no secret
	take  func(t *testing.T, l *leak, words string) string
}{
	{"refusal", true, answering(func(words string) conntest.Answer { return text(401, words) })},
	{"refusal in JSON", true, answering(func(words string) conntest.Answer {
		body, _ := json.Marshal(map[string]string{"error": words})
		return refuse("application/json", string(body))
	})},
	{"redirect to a path", true, answering(func(words string) conntest.Answer {
		return conntest.Status(302, http.Header{"Location": {"/" + url.PathEscape(words)}})
	})},
	{"redirect to a host", true, answering(func(words string) conntest.Answer {
		return conntest.Status(302, http.Header{"Location": {"https://" + inHost(words) + "/"}})
	})},
	{"redirect to a query", false, answering(func(words string) conntest.Answer {
		return conntest.Status(302, http.Header{"Location": {"/about?" + url.QueryEscape(words)}})
	})},
	{"no HTTP", true, answering(func(words string) conntest.Answer {
		return conntest.Garbage([]byte(strings.ReplaceAll(words, " ", "_") + "\r\n\r\n"))
	})},
	{"status", true, garbage("HTTP/1.1 WORDS")},
	{"reason of a status", false, garbage("HTTP/1.1 401 WORDS")},
	{"header line", true, garbage("HTTP/1.1 400 Bad Request\r\nWORDS")},
	{"Transfer-Encoding", true, garbage("HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: WORDS")},
	{"Connection", true, garbage("HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: WORDS")},
	{"Upgrade", true, garbage("HTTP/1.1 101 OK\r\nConnection: Upgrade\r\nUpgrade: WORDS")},
	{
		"Sec-WebSocket-Accept", true,
		garbage("HTTP/1.1 101 OK\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: WORDS"),
	},
	{"Sec-WebSocket-Protocol", true, answering(func(words string) conntest.Answer {
		return switching("", upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Protocol: "+words)
	})},
	{"Sec-WebSocket-Extensions", true, answering(func(words string) conntest.Answer {
		return switching("", upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions: x, "+words)
	})},
	{"certificate", true, connecting(func(words string) error {
		return x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{words}}, Host: "server.example"}
	})},
	{"DialContext", true, connecting(func(words string) error { return errors.New(words) })},
	{"Prepare", true, preparing(func(_ *Request, words string) error { return errors.New(words) })},
	{"proxy", true, func(t *testing.T, l *leak, words string) string {
		if l.proxy == nil {
			l.proxy = l.wsServer.proxy(t, "http", &proxyServer{})
		}
		l.proxy.answer = "HTTP/1.1 200 OK\r\n" + words + "\r\n\r\n"
		return l.printed(t)
	}},
	{"advised host", true, func(t *testing.T, l *leak, words string) string {
		ctx, report := advise(l.ctx, "ws://"+inHost(words)+"/")
		c, err := l.dialer.Dial(ctx)
		require.NoError(t, err)
		require.NoError(t, c.CloseNow())
		return report.err.Error()
	}},
	{"advised path", true, func(t *testing.T, l *leak, words string) string {
		l.Next(text(404, ""))
		l.ctx, _ = advise(l.ctx, "ws://server.example/"+url.PathEscape(words))
		return l.printed(t)
	}},
	{"redirect to a bad URL", false, answering(func(words string) conntest.Answer {
		return conntest.Status(301, http.Header{"Location": {"http://u:" + words + "@h:x/"}})
	})},
	{"redirect to a URL with a user", true, answering(func(words string) conntest.Answer {
		to := url.URL{Scheme: "http", User: url.UserPassword("u", words), Host: "canary.example"}
		return conntest.Status(307, http.Header{"Location": {to.String()}})
	})},
	{"not a WebSocket endpoint", false, answering(func(words string) conntest.Answer { return text(200, words) })},
	{"server of TLS", false, answering(func(words string) conntest.Answer { return text(400, "HTTPS "+words) })},
	{"long header", false, answering(func(words string) conntest.Answer {
		return conntest.Status(503, http.Header{"X": {strings.Repeat(words, 20000)}})
	})},
	{"closed handshake", false, answering(func(string) conntest.Answer { return conntest.HangUp })},
	{"limit on the handshake", false, func(t *testing.T, l *leak, _ string) string {
		l.dialer.HandshakeTimeout = time.Second
		l.Next(conntest.Hang, conntest.Hang)
		return l.printed(t)
	}},
	{"limit on connecting", false, failing(conntest.Fault{Hang: true})},
	{"closed connection", false, failing(conntest.Fault{Drop: true})},
	{"refused connection", false, failing(conntest.Fault{Err: syscall.ECONNREFUSED})},
	{"lookup", false, failing(conntest.Fault{Err: &net.DNSError{Name: "server.example", Err: "x"}})},
	{"server without TLS", false, func(t *testing.T, l *leak, _ string) string {
		secure := strings.NewReplacer("ws://", "wss://", "server.example/", "server.example:80/")
		l.dialer.URL = secure.Replace(l.dialer.URL)
		for i, u := range l.dialer.URLs {
			l.dialer.URLs[i] = secure.Replace(u)
		}
		return l.printed(t)
	}},
	{"url.Error of Prepare", false, preparing(func(_ *Request, words string) error {
		_, malformed := url.Parse("ws://u:" + words + "@h:x/?" + words)
		get := &url.Error{Op: "Get", URL: "https://auth.example/?key=" + words, Err: errors.New("refused")}
		return fmt.Errorf("keys: %w", errors.Join(get, malformed))
	})},
	{"URL of Prepare, malformed", false, prepared(func(r *Request, words string) {
		r.URL = "ws://u:" + words + "@h:x/"
	})},
	{"URL of Prepare, scheme", false, prepared(func(r *Request, words string) { r.URL = words + "://host/" })},
	{"URL of Prepare, fragment", false, prepared(func(r *Request, words string) { r.URL += "#" + words })},
	{"URL of Prepare, host", false, prepared(func(r *Request, words string) { r.URL = `ws://a"` + words + "/" })},
	{"header of Prepare, line as key", false, prepared(func(r *Request, words string) {
		r.Header["X-Key: "+words] = []string{"v"}
	})},
	{"header of Prepare, secret as key", true, prepared(func(r *Request, words string) {
		r.Header[inToken(words)] = []string{"\n"}
	})},
	{"header of Prepare, value", false, prepared(func(r *Request, words string) {
		r.Header["X-Bad"] = []string{words + "\n"}
	})},
	{"header of Prepare, Host", false, prepared(func(r *Request, words string) {
		r.Header["Host"] = []string{words + "/"}
	})},
	{"header of Prepare, of the handshake", false, prepared(func(r *Request, words string) {
		r.Header["Sec-WebSocket-Protocol"] = []string{words}
	})},
	{"URL of Validate, malformed", false, validating(func(d *WebSocket, words string) {
		d.URL = "ws://u:" + words + "@h:x/"
	})},
	{"URL of Validate, scheme", false, validating(func(d *WebSocket, words string) { d.URL = words + "://host/" })},
	{"URL of Validate, space", false, validating(func(d *WebSocket, words string) {
		d.URL = "ws://host/" + words + " "
	})},
	{"URL of Validate, fragment", false, validating(func(d *WebSocket, words string) {
		d.URL = "ws://host/#" + words
	})},
	{"URL of Validate, host", false, validating(func(d *WebSocket, words string) { d.URL = `ws://a"` + words + "/" })},
	{"URL of Validate, port", false, validating(func(d *WebSocket, words string) {
		d.URL = "ws://u:" + url.QueryEscape(words) + "@host:0/"
	})},
	{"header of Validate, line as key", false, heading(func(h http.Header, words string) {
		h["X-Key: "+words] = []string{"v"}
	})},
	{"header of Validate, secret as key", true, heading(func(h http.Header, words string) {
		h[inToken(words)] = []string{"\n"}
	})},
	{"header of Validate, value", false, heading(func(h http.Header, words string) {
		h["X-Bad"] = []string{words + "\n"}
	})},
	{"header of Validate, Host", false, heading(func(h http.Header, words string) {
		h["Host"] = []string{words + "/"}
	})},
	{"header of Validate, of the handshake", false, heading(func(h http.Header, words string) {
		h["Sec-WebSocket-Protocol"] = []string{words}
	})},
	{"subprotocol of Validate", false, validating(func(d *WebSocket, words string) {
		d.Subprotocols = append(d.Subprotocols, words)
	})},
	{"repeated subprotocol of Validate", false, validating(func(d *WebSocket, words string) {
		d.Subprotocols = append(d.Subprotocols, inToken(words), inToken(words))
	})},
	{"Proxy", false, choosing(func(words string) (*url.URL, error) { return nil, errors.New(words) })},
	{"scheme of a proxy", false, choosing(func(words string) (*url.URL, error) {
		return &url.URL{Scheme: words, Host: proxyAddr, User: url.UserPassword("u", words)}, nil
	})},
	{"host of a proxy", false, choosing(func(words string) (*url.URL, error) {
		return &url.URL{Scheme: "http", Host: `p"` + words, User: url.UserPassword("u", words)}, nil
	})},
	{"port of a proxy", false, choosing(func(words string) (*url.URL, error) {
		return &url.URL{Scheme: "http", Host: "p.example:0", User: url.UserPassword("u", words)}, nil
	})},
	{"proxy that cannot be reached", false, choosing(func(words string) (*url.URL, error) {
		return &url.URL{Scheme: "http", Host: "p.example", User: url.UserPassword("u", words)}, nil
	})},
	{"SOCKS5, login refused", false, throughSOCKS5("u", 0)},
	{"SOCKS5, request refused", false, throughSOCKS5("", 2)},
	{"SOCKS5, unknown reply", false, throughSOCKS5("", 77)},
	{"SOCKS5, text", false, func(t *testing.T, l *leak, words string) string {
		l.useSOCKS5(t, words)
		l.network.Fault(proxyAddr, conntest.Fault{OnConn: func(p *conntest.Pipe) {
			p.Inject(conntest.ToClient, []byte(words))
		}})
		return l.printed(t)
	}},
	{"SOCKS5, long login", false, func(t *testing.T, l *leak, words string) string {
		l.useSOCKS5(t, strings.Repeat(words, 40)).user = "u"
		return l.printed(t)
	}},
	{"close reason", true, func(t *testing.T, l *leak, words string) string {
		c, err := l.dialer.Dial(l.ctx)
		require.NoError(t, err)
		defer c.CloseNow()
		synctest.Wait()
		l.Disconnect(4000, words)
		_, err = c.Read(nil)
		closed, ok := errors.AsType[*conn.CloseError](err)
		require.True(t, ok)
		require.Equal(t, words, closed.Reason, "as it came, because it may be an advice")
		return err.Error()
	}},
}

// printed makes a dial that fails, and returns all that a program may print of its error.
func (l *leak) printed(t *testing.T) string {
	c, err := l.dialer.Dial(l.ctx)
	require.Nil(t, c)
	e, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	return fmt.Sprintf("%v\n%+v\n%s\n%s", err, err, e.Endpoint, e.Unwrap())
}

func answering(answer func(words string) conntest.Answer) func(*testing.T, *leak, string) string {
	return func(t *testing.T, l *leak, words string) string {
		l.Next(answer(words), answer(words)) // there may be two endpoints
		return l.printed(t)
	}
}

func garbage(head string) func(*testing.T, *leak, string) string {
	return answering(func(words string) conntest.Answer {
		return conntest.Garbage([]byte(strings.Replace(head, "WORDS", words, 1) + "\r\n\r\n"))
	})
}

func connecting(fail func(words string) error) func(*testing.T, *leak, string) string {
	return func(t *testing.T, l *leak, words string) string {
		l.dialer.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, fail(words) }
		return l.printed(t)
	}
}

func failing(f conntest.Fault) func(*testing.T, *leak, string) string {
	return func(t *testing.T, l *leak, _ string) string {
		l.network.Fault(serverAddr, f)
		l.network.Fault(proxyAddr, f)
		return l.printed(t)
	}
}

func preparing(prepare func(r *Request, words string) error) func(*testing.T, *leak, string) string {
	return func(t *testing.T, l *leak, words string) string {
		before := l.dialer.Prepare
		l.dialer.Prepare = func(ctx context.Context, r *Request) error {
			if before != nil {
				require.NoError(t, before(ctx, r))
			}
			return prepare(r, words)
		}
		return l.printed(t)
	}
}

func prepared(change func(r *Request, words string)) func(*testing.T, *leak, string) string {
	return preparing(func(r *Request, words string) error { change(r, words); return nil })
}

// validating returns what is printed of the error of Validate.
func validating(change func(d *WebSocket, words string)) func(*testing.T, *leak, string) string {
	return func(t *testing.T, l *leak, words string) string {
		url, urls := l.dialer.URL, l.dialer.URLs
		change(l.dialer, words)
		if l.dialer.URL != url && urls != nil {
			l.dialer.URL, l.dialer.URLs = "", append(urls, l.dialer.URL)
		}
		err := l.dialer.Validate()
		require.Error(t, err)
		_, failed := l.dialer.Dial(l.ctx)
		require.Equal(t, err, failed)
		require.Empty(t, l.dialer.Endpoint())
		require.Empty(t, l.dialer.Host())
		return fmt.Sprintf("%v\n%+v\n%s", err, err, errors.Unwrap(err))
	}
}

func heading(change func(h http.Header, words string)) func(*testing.T, *leak, string) string {
	return validating(func(d *WebSocket, words string) {
		if d.Header == nil {
			d.Header = http.Header{}
		}
		change(d.Header, words)
	})
}

func choosing(choose func(words string) (*url.URL, error)) func(*testing.T, *leak, string) string {
	return func(t *testing.T, l *leak, words string) string {
		l.dialer.Proxy = func(*http.Request) (*url.URL, error) { return choose(words) }
		return l.printed(t)
	}
}

// throughSOCKS5 dials through a SOCKS5 proxy that accepts no login of ours if it has a user, and else replies so.
func throughSOCKS5(user string, reply byte) func(*testing.T, *leak, string) string {
	return func(t *testing.T, l *leak, words string) string {
		p := l.useSOCKS5(t, words)
		p.user, p.reply = user, reply
		return l.printed(t)
	}
}

// useSOCKS5 has the dialer use a SOCKS5 proxy, with that password.
func (l *leak) useSOCKS5(t *testing.T, password string) *proxyServer {
	if l.proxy == nil {
		l.proxy = l.wsServer.proxy(t, "socks5", &proxyServer{})
	}
	l.proxy.user = ""
	to := &url.URL{Scheme: "socks5", Host: proxyAddr, User: url.UserPassword("u", password)}
	l.dialer.Proxy = http.ProxyURL(to)
	return l.proxy
}

// inToken returns words as a subprotocol, or as the name of a header.
func inToken(words string) string {
	return strings.Map(func(r rune) rune {
		if checkToken(string(r)) == nil {
			return r
		}
		return '-'
	}, words)
}

// inHost returns words as the host of a URL.
func inHost(words string) string {
	return strings.Map(func(r rune) rune {
		if validHost(string(r)) && r != '[' && r != ']' && r != '%' && r != ':' {
			return r
		}
		return '-'
	}, words)
}

// Promise 5. Each kind of secret comes back by each route, as it is and as it was sent.
func TestNoSecretOfADialIsPrinted(t *testing.T) {
	const canary = "canary"
	for _, k := range kinds {
		for _, secret := range []string{"S3cr3t.pl4nted-t0ken", `Pl4nted<"s&cr/et" %C3%A4+b=`, "pw4"} {
			if k.token && checkToken(secret) != nil {
				continue
			}
			for _, r := range routes {
				if slices.Contains(unknown[k.name], r.name) {
					continue
				}
				t.Run(k.name+"/"+secret+"/"+r.name, func(t *testing.T) {
					for i := 0; ; i++ {
						last := false
						withServer(t, func(t *testing.T, v *wsServer) {
							l := &leak{wsServer: v, ctx: t.Context()}
							seen := k.plant(v.dialer, secret)
							if last = i >= len(seen)-1; len(seen) == 0 {
								seen = []string{""}
							}
							if own := v.dialer.Proxy; own != nil {
								l.proxy = v.proxy(t, "http", &proxyServer{})
								l.proxy.user, l.proxy.password, v.dialer.Proxy = "u", secret, own
							}
							if k.in != nil {
								l.ctx = k.in(l.ctx, secret)
							}
							printed := r.take(t, l, canary+" "+seen[i])
							requireNoPart(t, printed, append(seen, secret)...)
							for line := range strings.SplitSeq(printed, "\n") {
								require.True(t, isPrintable(line), line)
								require.Less(t, len(line), 1000)
							}
							require.Equal(t, r.shows, strings.Contains(printed, canary), printed)
						})
						if last {
							break
						}
					}
				})
			}
		}
	}
}

// requireNoPart wants no part of a secret in text: see secrets.
func requireNoPart(t *testing.T, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		for i := window; i <= len(s); i++ {
			require.NotContains(t, lower(text), lower(s[i-window:i]))
		}
		if len(s) < window && s != "" {
			require.NotContains(t, lower(text), lower(s))
		}
	}
}

// Only the method print, which knows the secrets of a dial, makes a text fit for a log.
func TestOnlySecretsPrintWhatOthersWrote(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var users []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.Name == "printable" {
					users = append(users, declared(decl))
				}
				return true
			})
		}
	}
	require.ElementsMatch(t, []string{"printable", "secrets.print"}, users, "the function and its one caller")
}

// declared returns the name of a function or method, or "" for another declaration.
func declared(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	return strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
}

// hiding returns what hide leaves of text.
func hiding(text string, add func(s *secrets)) string {
	s := newSecrets(nil, nil)
	add(s)
	return s.hide(text, maxText)
}

func TestAnyEightBytesOfASecretAreLeftOut(t *testing.T) {
	u, err := url.Parse("wss://alice:open-sesame@h/p?key=abc%2Fdefghijkl&v=2&bare-token&transport=websocket")
	require.NoError(t, err)
	header := http.Header{
		"Authorization": {"Bearer eyJhbGciOi.payload"}, "Cookie": {"sid=f00dcafe; theme=dark; x=12"}, "X-Key": {"k3y"},
		"Host": {"public.example"}, "Origin": {"https://app.example"}, "User-Agent": {"trader/1.0"},
	}
	basic := http.Header{}
	(&http.Request{Header: basic}).SetBasicAuth("bob", "hunter22")
	for text, want := range map[string]string{
		"token expired":             "token expired",
		"missing bearer token":      "missing bearer token",
		"v2 is gone":                "v2 is gone",
		"public.example for app":    "public.example for app",
		"no https://app.example":    "no https://app.example",
		"no trader/1.0":             "no trader/1.0",
		"key is missing":            "key is missing",
		"no websocket":              "no websocket",
		"alice is blocked":          "... is blocked",
		"OPEN-SESAME":               "...",
		"ZIG-ZAG is wrong":          "... is wrong",
		"x: 12 of 12":               "x: 12 of 12",
		"abc/defghijkl":             "...",
		"abc%2Fdefg":                "...",
		"so defghijk.":              "so ....",
		"defghij":                   "defghij",
		"bare-token, bare-token":    "..., ...",
		"eyJhbGciOi and more":       "... and more",
		"payload is bad":            "payload is bad",
		".payload is bad":           "... is bad",
		"sid f00dcafe":              "... ...",
		"no k3y":                    "no ...",
		"v1.secret-subprotocol":     "...",
		"wrong password: hunter22 ": "wrong password: ... ",
		"k3yk3y":                    "...",
	} {
		require.Equal(t, want, hiding(text, func(s *secrets) {
			s.addURL(u)
			s.addHeader(header)
			s.addHeader(basic)
			s.add("v1.secret-subprotocol")
			s.add("zig-zag")
		}), text)
		require.Equal(t, text, (*secrets)(nil).hide(text, maxText))
	}
}

// Each of them is more than what is kept of a text.
func TestASecretIsLeftOutWhereATextIsCut(t *testing.T) {
	for _, secret := range []string{"S3cr3t.pl4nted-t0ken", "passw0r", "pw4"} {
		for from := maxText - 30; from < maxText+3; from++ {
			text := strings.Repeat("x", from) + secret + strings.Repeat("y", 100)
			got := hiding(text, func(s *secrets) { s.add(secret) })
			requireNoPart(t, got, secret)
			if short := strings.TrimLeft(got, "x"); len(secret) < window && from < maxText {
				require.NotContains(t, short, secret[:1], "nor what is left of a short one")
			}
			require.True(t, strings.HasSuffix(got, "..."))
			require.LessOrEqual(t, len(got), maxText+len("..."))
		}
	}
	require.Equal(t, strings.Repeat("ä", 128)+"...", (*secrets)(nil).hide(strings.Repeat("ä", 200), maxText))
	require.Equal(t, "x"+strings.Repeat("ä", 127)+"...", (*secrets)(nil).hide("x"+strings.Repeat("ä", 200), maxText))
}

// A server may answer with a header of 60 kB, in which parts of what it got nearly occur.
func TestALongTextIsCutBeforeItIsSearched(t *testing.T) {
	s := newSecrets(nil, nil)
	s.addHeader(http.Header{"Cookie": {"session=" + strings.Repeat("eyJhbGciOiJSUzI1NiIsImtpZCI6Ij", 200)}})
	var long strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&long, "eyjhbgc/%d", i)
	}
	all := long.String()
	short := testing.AllocsPerRun(10, func() { s.hide(all[:1000], maxText) })
	require.Less(t, testing.AllocsPerRun(10, func() { s.hide(all, maxText) }), 2*short)
}

// Secrets of any kind, in any text: no 8 bytes of them are left.
func FuzzHide(f *testing.F) {
	f.Add("user", "a b%2Fc=d,e;f", "wrong a b/c=d: %62", uint8(10))
	f.Add("", "ÄÖÜäöüÄÖÜ", "\xc3\x84ÖÜäöü", uint8(3))
	f.Fuzz(func(t *testing.T, text, value, rest string, limit uint8) {
		if len(value) < minSecret || len(text+value+rest) > 1000 {
			return
		}
		s := newSecrets(nil, nil)
		s.addHeader(http.Header{"X": {value}})
		for _, text := range []string{
			text,
			text + value + rest,
			text + strings.ToUpper(value),
			fmt.Sprintf("%q", value),
		} {
			got := s.hide(text, int(limit))
			require.LessOrEqual(t, len(got), int(limit)+len("..."))
			got = strings.ReplaceAll(got, "...", "\x00")
			for _, form := range forms(value) {
				for i := window; i <= len(form); i++ {
					if part := form[i-window : i]; !strings.Contains(part, "\x00") {
						require.NotContains(t, lower(got), part)
					}
				}
			}
		}
	})
}

// The connections of a dialer share what they keep for close reasons, unless a dial has secrets of its own.
func TestConnectionsShareTheirSecrets(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.Header = http.Header{"X-Key": {"hsecret"}}
		v.dialer.setup()
		u := v.dialer.endpoints.urls[0]
		require.Same(t, v.dialer.secrets, v.dialer.newRequest(u, nil).secrets)
		r := v.dialer.newRequest(u, v.dialer.Header)
		v.dialer.Prepare = func(context.Context, *Request) error { return nil }
		require.NoError(t, v.dialer.prepare(t.Context(), r, false))
		require.Same(t, v.dialer.secrets, r.secrets)
	})
	d := &WebSocket{URL: "ws://host/"}
	d.setup()
	require.Nil(t, d.secrets)
}

func TestRedactOfTheUserSeesNoSecret(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.Conn.Redact = func(reason string) string { return strings.ToUpper(reason) }
		c := v.dial(t)
		defer c.CloseNow()
		synctest.Wait()
		v.Disconnect(4000, "token qsecret expired")
		_, err := c.Read(nil)
		require.ErrorContains(t, err, `4000 "TOKEN ... EXPIRED"`)
	})
}
