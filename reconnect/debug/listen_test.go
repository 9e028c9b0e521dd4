package debug

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListenServesThePageUntilClose(t *testing.T) {
	p := newPage(t, nil)
	url, err := p.Listen(":0")
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/$`, url)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), "</html>")
	stream, err := client.Get(url + "?live")
	require.NoError(t, err)
	defer stream.Body.Close()
	line, err := bufio.NewReader(stream.Body).ReadString('\n')
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(line, "data: {"), line)
	require.NoError(t, p.Close())
	_, _ = io.ReadAll(stream.Body) // which ends, with an error or without
	_, err = net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"))
	require.Error(t, err)
	_, err = p.Listen(":0")
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestListenSaysWhatIsWrongWithTheAddress(t *testing.T) {
	p := newPage(t, nil)
	_, err := p.Listen("6060")
	require.EqualError(t, err, `debug: the address "6060" has not the form host:port, such as :6060`)
	first, err := p.Listen("localhost:0")
	require.NoError(t, err)
	_, err = p.Listen(strings.Trim(first, "htp:/"))
	require.ErrorContains(t, err, "debug: listen tcp 127.0.0.1:")
}
