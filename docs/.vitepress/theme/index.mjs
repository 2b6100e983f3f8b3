// VitePress' own theme; style.css is for pictures and the search on a phone.
import theme from 'vitepress/theme'
import './style.css'

export default theme
