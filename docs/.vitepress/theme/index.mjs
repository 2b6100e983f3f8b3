// VitePress' own theme; style.css is for the pictures.
import theme from 'vitepress/theme'
import './style.css'

export default theme
