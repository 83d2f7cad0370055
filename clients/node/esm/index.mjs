// One copy of the state for ES modules and CommonJS: this module exports the members of the CommonJS one.
export {
  AlwaysRecordSampler,
  Client,
  COUNTED_ATTRIBUTES,
  ERROR,
  EXPORTER_HEADERS,
  install,
  Key,
  SpanstatsdSpanProcessor,
  TOP_LEVEL,
} from '../dist/index.js'
