package otlp

import "github.com/spanstatsd/spanstatsd/internal/door/bodies"

// hear has metrics heard that go on, for what SDKs say in them of their own spans. What can't be read, or is
// in JSON, goes on unheard.
func (s *Server) hear(c *call) {
	if c.encoding == inJSON {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.Log.Bug(p)
		}
	}()
	message := c.message
	if c.packing != bodies.Plain {
		w := s.turns.take(c.sender())
		defer s.turns.give(w)
		plain, err := w.inflater.Inflate(message, c.packing, &s.Bodies)
		defer plain.Release()
		if err != nil {
			return
		}
		message = plain.Bytes
	}
	s.said.Hear(message)
}
