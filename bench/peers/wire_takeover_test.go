package main

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

// deflater compresses messages of a client, each with the context of those before.
type deflater struct {
	out bytes.Buffer
	w   *flate.Writer
}

func newDeflater(t *testing.T) *deflater {
	d := new(deflater)
	var err error
	d.w, err = flate.NewWriter(&d.out, flate.BestSpeed)
	require.NoError(t, err)
	return d
}

func (d *deflater) deflate(t *testing.T, p []byte) []byte {
	t.Helper()
	d.out.Reset()
	_, err := d.w.Write(p)
	require.NoError(t, err)
	require.NoError(t, d.w.Flush())
	return bytes.TrimSuffix(bytes.Clone(d.out.Bytes()), []byte(deflateTail))
}

// sends returns the frame of a client.
func sends(head byte, p []byte) []byte {
	return conntest.Frame{Head: head, Mask: true, Payload: p}.Bytes()
}

func TestTakeoverServerInflatesWithContext(t *testing.T) {
	d := newDeflater(t)
	text := bytes.Repeat([]byte("words that come again, "), 3000) // more than a window
	first, second := d.deflate(t, text), d.deflate(t, text[:1000])
	require.Less(t, len(second), 30, "it refers to the first")
	var in []byte
	in = append(in, sends(bitRSV1|opBinary, first[:100])...) // in fragments, with a ping between
	in = append(in, sends(bitFin|opPing, []byte("hi"))...)
	in = append(in, sends(bitFin, first[100:])...)
	in = append(in, sends(bitFin|bitRSV1|opBinary, second)...)
	in = append(in, sends(bitFin|opBinary, []byte("short"))...)

	var messages []string
	var answers []byte
	w, r := new(takeoverWire), bufio.NewReader(bytes.NewReader(in))
	for {
		p, answer, err := w.readFrame(r, nil)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if answers = append(answers, answer...); answer == nil {
			messages = append(messages, string(p))
		}
	}
	require.Equal(t, []string{string(text), string(text[:1000]), "short"}, messages)
	require.Equal(t, "\x8a\x02hi", string(answers))
}

func TestTakeoverServerRejectsUncompressedMessage(t *testing.T) {
	for _, w := range []struct {
		frame []byte
		want  string
	}{
		{sends(bitFin|opBinary, make([]byte, compressed)), "read message: 512 bytes are not compressed"},
		{sends(bitFin|bitRSV1|opBinary, []byte{7}), "read message: flate: corrupt input"},
		{sends(bitFin|0x20|opBinary, nil), "read frame: header a2 80"},
	} {
		_, _, err := new(takeoverWire).readFrame(bufio.NewReader(bytes.NewReader(w.frame)), nil)
		require.ErrorContains(t, err, w.want)
	}
}

func TestTakeoverServerSendsMessageThatRefersToNoOther(t *testing.T) {
	w := new(takeoverWire)
	for range 2 {
		frame := w.appendFrame(nil, payload(1024))
		require.Equal(t, byte(bitFin|bitRSV1|opBinary), frame[0])
		require.Equal(t, byte(126), frame[1])
		p, err := new(takeoverWire).inflate(frame[4:])
		require.NoError(t, err)
		require.Equal(t, payload(1024), p)
	}
}

func TestServerAgreesToTakeoverOnlyIfOffered(t *testing.T) {
	for _, w := range []struct{ extension, offer, accepted string }{
		{"", "permessage-deflate", ""},
		{permessageDeflate, "permessage-deflate", permessageDeflate},
		{permessageDeflate, "permessage-deflate; client_max_window_bits", permessageDeflate},
		{permessageDeflate, "", "rejected"},
		{permessageDeflate, "permessage-deflate; client_no_context_takeover", "rejected"},
		{permessageDeflate, "permessage-deflate; server_no_context_takeover", "rejected"},
	} {
		client, server := net.Pipe()
		upgraded := make(chan error, 1)
		go func() { // ends with the handshake, which is waited for below
			upgraded <- upgrade(server, bufio.NewReader(server), w.extension)
			server.Close()
		}()
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://host/", nil)
		require.NoError(t, err)
		request.Header.Set("Sec-WebSocket-Extensions", w.offer)
		require.NoError(t, request.Write(client))
		response, err := http.ReadResponse(bufio.NewReader(client), request)
		if w.accepted == "rejected" {
			require.Error(t, err)
			require.ErrorContains(t, <-upgraded, "accept extension permessage-deflate: the offer is ")
			continue
		}
		require.NoError(t, err)
		require.NoError(t, <-upgraded)
		require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
		require.Equal(t, w.accepted, response.Header.Get("Sec-WebSocket-Extensions"))
		client.Close()
	}
}

// The dial of a client without compression fails, so that no figure is that of a connection without it.
func TestClientWithoutCompressionIsNotMeasuredWithTakeover(t *testing.T) {
	server, err := start()
	require.NoError(t, err)
	defer server.end()
	setup := siteSetup{Protocols: []protocol{webSocket}, Host: "127.0.0.1", Takeover: true}
	at, err := server.do(t.Context(), order{Do: "site", Site: setup})
	require.NoError(t, err)
	j := job{Peers: []string{"gorilla"}, Addresses: at.Addresses, Count: 1, Takeover: true, Limit: patience}
	_, err = new(local).do(t.Context(), order{Do: "idle", Job: j})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
