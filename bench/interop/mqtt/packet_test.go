package mqtt_test

// This file has the packets of MQTT 3.1.1 that the test needs.

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/redial-go/redial/conn"
)

// mqttFramer is a conn.Framer: a message is a whole packet, with its fixed header.
type mqttFramer struct{}

func (mqttFramer) AppendFrame(dst, packet []byte) ([]byte, error) { return append(dst, packet...), nil }

func (mqttFramer) ReadFrame(r *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	first, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	n, err := binary.ReadUvarint(r) // section 2.2.3: the same as LEB128, in at most 4 bytes
	switch {
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	case n > uint64(limit):
		return nil, &conn.TooBigError{Limit: int64(limit)}
	}
	return conn.ReadBody(r, binary.AppendUvarint(append(buf[:0], first), n), int(n))
}

// The first bytes of packets (section 2.2).
const (
	connectPacket = 0x10
	connackPacket = 0x20
	publishQoS1   = 0x32
	dupFlag       = 0x08
	pubackPacket  = 0x40
)

// text appends a string with its length.
func text(dst []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(s))), s...)
}

func packet(first byte, body []byte) conn.Message {
	return conn.BinaryMessage(append(binary.AppendUvarint([]byte{first}, uint64(len(body))), body...))
}

// connect asks for a session that goes on (section 3.1).
func connect(client string) conn.Message {
	body := append(text(nil, "MQTT"), 4, 0, 0, 60)
	return packet(connectPacket, text(body, client))
}

// publish is a message with QoS 1 (section 3.3).
func publish(topic string, id uint16, payload []byte, again bool) conn.Message {
	first := byte(publishQoS1)
	if again {
		first |= dupFlag
	}
	body := binary.BigEndian.AppendUint16(text(nil, topic), id)
	return packet(first, append(body, payload...))
}

// connack returns whether the broker has our session still (section 3.2).
func connack(packet []byte) (present bool, err error) {
	switch {
	case len(packet) != 4 || packet[0] != connackPacket:
		return false, errors.New("not a CONNACK")
	case packet[3] != 0:
		return false, fmt.Errorf("CONNECT is refused: %d", packet[3])
	}
	return packet[2]&1 != 0, nil
}

// puback returns the packet that is acknowledged (section 3.4).
func puback(packet []byte) (id uint16, ok bool) {
	if len(packet) != 4 || packet[0] != pubackPacket {
		return 0, false
	}
	return binary.BigEndian.Uint16(packet[2:]), true
}
