export { type FakeContent, type FakeFailure, type FakePrompt, FakeService } from "./FakeService.ts"
