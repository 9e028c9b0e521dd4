package meter

// Members returns how many connections are known.
func (m *Meter) Members() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.members)
}
